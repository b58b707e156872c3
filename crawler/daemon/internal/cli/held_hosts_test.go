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

// TestHeldHosts: the host that asked for a pause by 503 and Retry-After is held, and no other.
func TestHeldHosts(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite(), crawltest.Site{Host: "busy.example",
		Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(crawltest.Response{
			Status: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"3600"}}})}})
	runCommand(t, v.CrawlArgs("--max-pages=2", "http://busy.example/", "http://shop.example/")...).want(t,
		command.ExitDone)
	env := &command.Env{Stderr: terminal.NewStatusLineWriter(new(bytes.Buffer))}
	var held inspect.HeldHosts
	var asOf time.Time
	read := func(ctx context.Context, k *stoppedcrawl.Crawl) (err error) {
		asOf = k.AsOf
		held, err = k.HeldHosts(ctx, 100)
		return err
	}
	err := stoppedcrawl.OpenAndDo(t.Context(), env, v.DataDir(), read)
	if err != nil {
		t.Fatal(err)
	}
	rest := held.Until.Sub(asOf)
	if held.Count != 1 || held.More || held.Reason != "status 503" || rest < 50*time.Minute || rest > 2*time.Hour {
		t.Errorf("held are %+v at %v, want one host for an hour, by status 503", held, asOf)
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
			", 1 host held until " + until.Format(time.TimeOnly) + " by status 503"},
		{"several", inspect.HeldHosts{Count: 3, More: true, Until: until}, storage.Counts{QueuedHosts: 4},
			", at least 3 hosts held until " + until.Format(time.TimeOnly) + " at the earliest"},
		{"tomorrow", inspect.HeldHosts{Count: 1, Until: now.Add(24 * time.Hour)}, storage.Counts{QueuedHosts: 1},
			", 1 host held until " + now.Add(24*time.Hour).Format(time.DateTime)},
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
