package cli

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// clearLine is the escape sequence that erases a status line on a terminal.
const clearLine = "\r\x1b[K"

// steadyStats returns the statistics of a crawl of ten pages a second after the given time.
func steadyStats(start time.Time) func() crawler.Stats {
	return func() crawler.Stats {
		pages := int64(time.Since(start) / (100 * time.Millisecond))
		return crawler.Stats{Pages: pages, BlockedURLs: 3, Errors: 2,
			HostTraffic: crawler.HostTraffic{Bytes: pages << 10}}
	}
}

func fixedCounts(context.Context) (storage.Counts, error) {
	return storage.Counts{QueuedHosts: 7, DueHosts: 2, QueuedURLs: 40, AwaitingRevisit: 9}, nil
}

func TestProgressLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		p := &progressReporter{crawlStats: steadyStats(time.Now()), frontierCounts: fixedCounts, start: time.Now(),
			limits: project.LimitSettings{Pages: 500, Duration: project.Duration(time.Hour)}}
		done := make(chan struct{})
		time.AfterFunc(25*time.Second, func() { close(done) })
		p.run(done, terminal.NewStatusLineWriter(&b), false)
		want := "100 pages, 10.0/s, hosts 2 due, 5 waiting, 40 queued, 9 resting, 3 blocked, 2 errors, 100.0 KiB, " +
			"at most 40s left\n" +
			"200 pages, 10.0/s, hosts 2 due, 5 waiting, 40 queued, 9 resting, 3 blocked, 2 errors, 200.0 KiB, at " +
			"most 30s left\n"
		if b.String() != want {
			t.Errorf("got\n%swant\n%s", b.String(), want)
		}
	})
}

// A live line is redrawn in place, and removed at the end.
func TestProgressDrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		p := &progressReporter{crawlStats: steadyStats(time.Now()), start: time.Now(),
			frontierCounts: func(context.Context) (storage.Counts, error) {
				return storage.Counts{}, errors.New("closed")
			}}
		done := make(chan struct{})
		time.AfterFunc(1200*time.Millisecond, func() { close(done) })
		p.run(done, terminal.NewStatusLineWriter(&b), true)
		want := clearLine + "5 pages, 10.0/s, 3 blocked, 2 errors, 5.0 KiB" + clearLine +
			"10 pages, 10.0/s, 3 blocked, 2 errors, 10.0 KiB" + clearLine
		if b.String() != want {
			t.Errorf("got %q, want %q", b.String(), want)
		}
	})
}

func TestProgressLeft(t *testing.T) {
	start := time.Unix(0, 0)
	for _, tt := range []struct {
		name   string
		limits project.LimitSettings
		pages  int64
		rate   float64
		want   time.Duration
		ok     bool
	}{
		{"no limit", project.LimitSettings{}, 10, 1, 0, false},
		{"pages", project.LimitSettings{Pages: 100}, 40, 2, 30 * time.Second, true},
		{"pages at a standstill", project.LimitSettings{Pages: 100}, 40, 0, 0, false},
		{"pages, hardly moving", project.LimitSettings{Pages: 100}, 40, 1e-12, 3e9 * time.Second, true},
		{"bytes", project.LimitSettings{Bytes: 100 << 10}, 40, 2, 30 * time.Second, true},
		{"bytes before pages", project.LimitSettings{Pages: 100, Bytes: 60 << 10}, 40, 2, 10 * time.Second, true},
		{"bytes, none yet", project.LimitSettings{Bytes: 100 << 10}, 0, 2, 0, false},
		{"time", project.LimitSettings{Duration: project.Duration(time.Minute)}, 40, 2, 50 * time.Second, true},
		{"time that is over", project.LimitSettings{Duration: project.Duration(time.Second)}, 40, 2, 0, true},
		{"whichever ends first", project.LimitSettings{Pages: 100, Duration: project.Duration(time.Minute)}, 40,
			2, 30 * time.Second, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &progressReporter{limits: tt.limits, start: start}
			stats := crawler.Stats{Pages: tt.pages, HostTraffic: crawler.HostTraffic{Bytes: tt.pages << 10}}
			got, ok := p.estimatedTimeToLimit(start.Add(10*time.Second), stats, tt.rate)
			if got != tt.want || ok != tt.ok {
				t.Errorf("%v, %v; want %v, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

// Log lines scroll above the live line.
func TestTerminalWriter(t *testing.T) {
	var b bytes.Buffer
	s := terminal.NewStatusLineWriter(&b)
	s.DrawStatusLine("")
	for _, step := range []func(){
		func() { s.Write([]byte("one\n")) },
		func() { s.DrawStatusLine("10 pages") },
		func() { s.Write([]byte("two\n")) },
		func() { s.DrawStatusLine("") },
		func() { s.Write([]byte("three\n")) },
	} {
		step()
	}
	if want := "one\n" + clearLine + "10 pages" + clearLine + "two\n" + "10 pages" + clearLine +
		"three\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB",
		10 << 20: "10.0 MiB", 3 << 40: "3.0 TiB"} {
		if got := plaintext.FormatBytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// TestProgressPaused checks that the progress says when a crawl is paused because this machine has no
// network.
func TestProgressPaused(t *testing.T) {
	p := &progressReporter{crawlStats: func() crawler.Stats {
		return crawler.Stats{Pages: 7, MachinePauseReason: "the network is unreachable"}
	},
		frontierCounts: func(context.Context) (storage.Counts, error) { return storage.Counts{}, errors.New("closed") }}
	if got, want := p.statusLine(t.Context(),
		time.Now()), "paused: the network is unreachable, 7 pages, "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q first", got, want)
	}
}

// The progress says why hosts wait, if all of them do, and how long their queues take at least.
func TestProgressPace(t *testing.T) {
	now := time.Unix(1000, 0)
	visit := func(delay time.Duration, slots int, reason politeness.DelayReason, due time.Time) *crawler.Visit {
		return &crawler.Visit{NextVisit: politeness.NextVisit{Delay: delay, HostSlots: slots, Due: due},
			DelayReason: reason}
	}
	configured := visit(time.Second, 1, politeness.ConfiguredDelay, now)
	byRobots := visit(2*time.Second, 1, politeness.RobotsDelay, now)
	old := visit(time.Second, 1, politeness.ConfiguredDelay, now.Add(-time.Minute))
	for _, tt := range []struct {
		name   string
		visits []*crawler.Visit
		counts storage.Counts
		limits project.LimitSettings
		want   string // after the bytes
	}{
		{"one host", []*crawler.Visit{configured}, storage.Counts{QueuedHosts: 1, QueuedURLs: 40},
			project.LimitSettings{}, ", 1s a host by --delay, at least 40s left"},
		{"Crawl-delay", []*crawler.Visit{configured, byRobots, byRobots},
			storage.Counts{QueuedHosts: 2, QueuedURLs: 41}, project.LimitSettings{},
			", 2s a host by Crawl-delay, at least 21s left"},
		{"two visits at a time", []*crawler.Visit{visit(3*time.Second, 2, politeness.AdaptiveDelay, now)},
			storage.Counts{QueuedHosts: 1, QueuedURLs: 2}, project.LimitSettings{},
			", 1.5s a host by politeness.adaptive, at least 3s left"},
		{"a host is due", []*crawler.Visit{configured}, storage.Counts{QueuedHosts: 2, DueHosts: 1, QueuedURLs: 3},
			project.LimitSettings{}, ", at least 2s left"},
		{"suspended URLs", []*crawler.Visit{configured},
			storage.Counts{QueuedHosts: 1, QueuedURLs: 40, SuspendedURLs: 40}, project.LimitSettings{},
			", 1s a host by --delay"},
		{"other hosts wait", []*crawler.Visit{old}, storage.Counts{QueuedHosts: 1, QueuedURLs: 40},
			project.LimitSettings{}, ""},
		{"no visit", nil, storage.Counts{QueuedHosts: 1, QueuedURLs: 40}, project.LimitSettings{}, ""},
		{"a limit after the queue", []*crawler.Visit{configured}, storage.Counts{QueuedHosts: 1, QueuedURLs: 40},
			project.LimitSettings{Duration: project.Duration(time.Minute)}, ", 1s a host by --delay, 40s to 1m0s left"},
		{"a limit before the end of the queue", []*crawler.Visit{configured},
			storage.Counts{QueuedHosts: 1, QueuedURLs: 400},
			project.LimitSettings{Duration: project.Duration(time.Minute)},
			", 1s a host by --delay, at most 1m0s left"},
		{"no delay", []*crawler.Visit{visit(0, 1, "", now)}, storage.Counts{QueuedHosts: 1, QueuedURLs: 40},
			project.LimitSettings{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var recent recentDelays
			for _, v := range append(slices.Repeat([]*crawler.Visit{old}, 70), tt.visits...) { // the ring is full
				recent.add(v)
			}
			p := &progressReporter{crawlStats: func() crawler.Stats { return crawler.Stats{} }, start: now,
				frontierCounts: func(context.Context) (storage.Counts, error) { return tt.counts, nil },
				recentDelays:   &recent, limits: tt.limits}
			if _, got, _ := strings.Cut(p.statusLine(t.Context(), now), ", 0 B"); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
