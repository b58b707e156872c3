package cli

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/stoppedcrawl"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// TestHeldHosts: a host that asked for a pause by 503 and Retry-After, for a page or its robots.txt, is held; one
// that rests for its delay is not, nor one that is suspended for a too long Crawl-delay.
func TestHeldHosts(t *testing.T) {
	busy := crawltest.Response{Status: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"3600"}}}
	slow := crawltest.Site{Host: "slow.example", Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
		Response: crawltest.Text("User-agent: *\nCrawl-delay: 7200\n"), CrawlDelay: 2 * time.Hour})}
	for reason, site := range map[string]crawltest.Site{
		"status 503":             {Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(busy)}},
		"robots.txt: status 503": {Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: busy})},
	} {
		site.Host = "busy.example"
		v := daemontest.NewWebFixture(t, daemontest.ShopSite(), slow, site)
		runCommand(t, v.CrawlArgs("--max-pages=4", "http://busy.example/", "http://slow.example/",
			"http://shop.example/")...).want(t, command.ExitDone)
		env := &command.Env{Stderr: terminal.NewStatusLineWriter(new(bytes.Buffer))}
		var held inspect.HeldHosts
		var asOf time.Time
		read := func(ctx context.Context, k *stoppedcrawl.Crawl) (err error) {
			asOf = k.AsOf
			held, err = k.HeldHosts(ctx, 100)
			return err
		}
		if err := stoppedcrawl.OpenAndDo(t.Context(), env, v.DataDir(), read); err != nil {
			t.Fatal(err)
		}
		rest := held.Until.Sub(asOf)
		if held.Count != 1 || held.More || held.Reason != reason || rest < 50*time.Minute || rest > 2*time.Hour {
			t.Errorf("held are %+v at %v, want one host for an hour, by %s", held, asOf, reason)
		}
		if !held.Others {
			t.Error("the queue of shop.example is forgotten")
		}
	}
}

// TestProgressOfHeldHosts: while all hosts wait, the progress says what holds them instead of their delay, and
// reads the frontier for it every 5 s at most.
func TestProgressOfHeldHosts(t *testing.T) {
	now := time.Now()
	var recent recentDelays
	recent.add(&crawler.Visit{NextVisit: politeness.NextVisit{Delay: 5 * time.Second, HostSlots: 1, Due: now},
		DelayReason: politeness.ConfiguredDelay})
	until := now.Add(5 * time.Minute)
	for _, tt := range []struct {
		name   string
		held   inspect.HeldHosts
		counts storage.Counts
		want   string
	}{
		{"one host", inspect.HeldHosts{Count: 1, Until: until, Reason: "status 503"}, storage.Counts{QueuedHosts: 1},
			", 1 host held until " + until.Format(time.TimeOnly) + " by status 503, at least 5m0s left"},
		{"several", inspect.HeldHosts{Count: 3, More: true, Others: true, Until: until}, storage.Counts{QueuedHosts: 4},
			", at least 3 hosts held until " + until.Format(time.TimeOnly) + " at the earliest, 5s a host by --delay"},
		{"tomorrow", inspect.HeldHosts{Count: 1, Until: now.Add(24 * time.Hour)}, storage.Counts{QueuedHosts: 1},
			", 1 host held until " + now.Add(24*time.Hour).Format(time.DateTime) + ", at least 24h0m0s left"},
		{"one of several", inspect.HeldHosts{Count: 1, Others: true, Until: until, Reason: "no answer"},
			storage.Counts{QueuedHosts: 9},
			", 1 host held until " + until.Format(time.TimeOnly) + " by no answer, 5s a host by --delay"},
		{"none", inspect.HeldHosts{}, storage.Counts{QueuedHosts: 1}, ", 5s a host by --delay"},
		{"a host is due", inspect.HeldHosts{Count: 1}, storage.Counts{QueuedHosts: 2, DueHosts: 1}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reads := 0
			p := &progressReporter{crawlStats: func() crawler.Stats { return crawler.Stats{} }, start: now,
				frontierCounts: func(context.Context) (storage.Counts, error) { return tt.counts, nil },
				recentDelays:   &recent,
				heldHosts:      func(context.Context) (inspect.HeldHosts, error) { reads++; return tt.held, nil }}
			for range 3 {
				if _, got, _ := strings.Cut(p.statusLine(t.Context(), now), ", 0 B"); got != tt.want {
					t.Errorf("%q, want %q", got, tt.want)
				}
			}
			if reads > 1 {
				t.Errorf("the frontier was read %d times at once, want 1", reads)
			}
		})
	}
}
