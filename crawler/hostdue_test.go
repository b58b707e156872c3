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
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// newBusyWeb returns a web of a.test, which answers pages below /busy with 503 and a Retry-After of
// an hour.
func newBusyWeb() *crawltest.Web {
	busy := crawltest.Status(503)
	busy.Header.Set("Retry-After", "3600")
	return crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks(),
		Latency: crawltest.Latency{Base: 100 * time.Millisecond},
		Pages: map[string]crawltest.PageFunc{"/busy/0": func(r crawltest.PageRequest) crawltest.Response {
			if r.NthForURL == 1 {
				return busy
			}
			return crawltest.HTML("")
		}}})
}

// newStoreSharingCrawl returns a crawl from the store in a file, which shares hosts, the
// HostDueStore and robots.txt records with others.
func newStoreSharingCrawl(t *testing.T, web *crawltest.Web, file string, hosts *politeness.SharedHosts,
	hostDue *crawler.HostDueStore, seeds ...string) *crawler.Crawler {
	t.Helper()
	return newStoreSharingCrawlOn(t, web, openBolt(t, file), hosts, hostDue, seeds...)
}

// newStoreSharingCrawlOn is newStoreSharingCrawl with an open store.
func newStoreSharingCrawlOn(t *testing.T, web *crawltest.Web, store storage.Store, hosts *politeness.SharedHosts,
	hostDue *crawler.HostDueStore, seeds ...string) *crawler.Crawler {
	t.Helper()
	c := newDirectCrawl(t, web, store)
	c.Limiter = hosts.NewLimiter(politeness.LimiterConfig{})
	c.Frontier = frontier.New(store, frontier.Config{Budget: c.Limiter})
	agent, err := robots.NewAgent("testbot")
	if err != nil {
		t.Fatal(err)
	}
	c.Gate = gate.New(gate.Config{Agent: agent}, hostDue.Store)
	c.HostDueStore = hostDue
	addSeeds(t, c, seeds...)
	return c
}

// TestARetryAfterIsForAll: the hour that one crawl was asked to wait is also kept by a later crawl
// in the same process, in the next process, and in one that resumes after a kill.
func TestARetryAfterIsForAll(t *testing.T) {
	for _, next := range []string{"same process", "stopped", "killed"} {
		t.Run(next, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir, web, hosts := t.TempDir(), newBusyWeb(), politeness.NewSharedHosts()
				shared := filepath.Join(dir, "robots.db")
				notes := openNotes(t, shared)
				hostDue := &crawler.HostDueStore{Store: notes}
				first := newStoreSharingCrawl(t, web, filepath.Join(dir, "first.db"), hosts, hostDue,
					numberedSeeds(1, "a.test", "busy")...)
				ctx, stop := context.WithCancel(t.Context())
				acked := make(chan string, 1)
				first.Hooks.Acked = func(a storage.Ack) {
					if a.Outcome == storage.RetryAt {
						acked <- copyStoreFile(t, shared)
						stop()
					}
				}
				if err := first.Run(ctx); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				switch file := <-acked; next {
				case "stopped":
					if err := notes.Close(); err != nil {
						t.Fatal(err)
					}
					hosts, hostDue = politeness.NewSharedHosts(),
						&crawler.HostDueStore{Store: openNotes(t, shared), RestartedAt: time.Now()}
				case "killed":
					hosts, hostDue = politeness.NewSharedHosts(),
						&crawler.HostDueStore{Store: openNotes(t, file), RestartedAt: time.Now()}
				}
				second := newStoreSharingCrawl(t, web, filepath.Join(dir, "second.db"), hosts, hostDue,
					numberedSeeds(3, "a.test", "x")...)
				if err := second.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				log := web.Log()
				if rest := log[2].Start.Sub(log[1].End); rest != time.Hour {
					t.Errorf("the second crawl came after %v, want an hour", rest)
				}
				if second.Stats().Pages != 3 {
					t.Errorf("%+v", second.Stats())
				}
				checkPoliteness(t, web, time.Second)
			})
		})
	}
}

// TestShortDelaysAreWaitedForAfterARestart: short delays are not stored, so no host is visited
// before the longest of them has passed.
func TestShortDelaysAreWaitedForAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, begin := newOneHostWeb(time.Second), time.Now()
		hostDue := &crawler.HostDueStore{Store: newMemoryStore(), RestartedAt: begin}
		c := newStoreSharingCrawl(t, web, filepath.Join(t.TempDir(), "frontier.db"), politeness.NewSharedHosts(),
			hostDue, numberedSeeds(2, "a.test", "x")...)
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		if first := log[0].Start.Sub(begin); first != 10*time.Second || len(log) != 3 {
			t.Errorf("%d requests, the first after %v, want 10s", len(log), first)
		}
		checkGaps(t, log, time.Second)
		if took := time.Since(begin); took > 15*time.Second {
			t.Errorf("took %v: a host was to wait once only", took)
		}
	})
}
