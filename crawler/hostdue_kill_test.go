package crawler_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/politeness"
)

// TestAPaceIsKeptAcrossAKill: a process is killed during a visit, so no store knows of the visit. A
// crawl that did not make it waits for the longest rest that the site, a brake or its own policy
// requires.
func TestAPaceIsKeptAcrossAKill(t *testing.T) {
	const rest = time.Minute
	for _, tt := range []struct {
		name   string
		robots string
		brake  time.Duration
		delay  time.Duration // of the second crawl
	}{
		{"Crawl-delay", "User-agent: *\nCrawl-delay: 60\n", 0, time.Second},
		{"brake", "", rest, time.Second},
		{"own delay", "", 0, rest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				shared := filepath.Join(dir, "robots.db")
				ctx, stop := context.WithCancel(t.Context())
				var copied string // the file of HostDueStore after the kill
				web := crawltest.New(crawltest.Site{Host: "a.test",
					Robots: robotsText(tt.robots, 0, nil), Fallback: pageWithLinks(),
					Latency: crawltest.Latency{Base: 20 * time.Second},
					Pages: map[string]crawltest.PageFunc{"/first/1": func(crawltest.PageRequest) crawltest.Response {
						copied = copyStoreFile(t, shared)
						stop()
						return crawltest.HTML("")
					}}})
				run := func(ctx context.Context, name string, hosts *politeness.SharedHosts,
					hostDue *crawler.HostDueStore, seeds ...string) error {
					store := openBolt(t, filepath.Join(dir, name+".db"))
					c := newStoreSharingCrawlOn(t, web, store, hosts, hostDue, seeds...)
					c.Policy.Delay, c.Policy.AdaptiveFactor, c.Settings.GracePeriod = time.Second, -1, time.Nanosecond
					if name == "second" {
						c.Policy.Delay = tt.delay
					}
					if tt.brake > 0 {
						c.Brakes = &politeness.Brakes{}
						setBrake(t, c, politeness.Brake{Host: "a.test", Delay: tt.brake})
					}
					return errors.Join(c.Run(ctx), store.Close())
				}
				hosts, hostDue := politeness.NewSharedHosts(), &crawler.HostDueStore{Store: openNotes(t, shared)}
				if err := run(t.Context(), "second", hosts, hostDue, "http://a.test/second/0"); err != nil {
					t.Fatal(err)
				}
				if err := run(ctx, "first", hosts, hostDue, numberedSeeds(2, "a.test", "first")...); !errors.Is(err,
					context.Canceled) {
					t.Fatal(err)
				}
				hosts, hostDue = politeness.NewSharedHosts(),
					&crawler.HostDueStore{Store: openNotes(t, copied), RestartedAt: time.Now()}
				if err := run(t.Context(), "second", hosts, hostDue, "http://a.test/second/1"); err != nil {
					t.Fatal(err)
				}
				log := hostLog(web.Log(), "a.test")
				if len(log) != 5 {
					t.Fatalf("%d requests, want 5", len(log))
				}
				checkGaps(t, log[3:], rest)
			})
		})
	}
}
