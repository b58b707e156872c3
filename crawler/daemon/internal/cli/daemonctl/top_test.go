package daemonctl

import (
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// TestReadKeys checks that readKeypresses stops at q even if no receiver takes the keys before it.
func TestReadKeys(t *testing.T) {
	keys, ended := make(chan byte, 2), false
	readKeypresses(strings.NewReader("jkjkjkq"), keys, func() { ended = true }, t.Context().Done())
	if !ended || len(keys) != 2 {
		t.Errorf("ended: %v, %d keys wait", ended, len(keys))
	}
}

// TestTopRender checks the whole screen of a daemon, and that text from outside cannot send control
// characters to the terminal.
func TestTopRender(t *testing.T) {
	now := time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC)
	v := daemonSnapshot{
		selectedProject: "books",
		projects: []api.Project{
			{Name: "books", State: api.StateRunning, RecentThroughput: api.ThroughputSample{PagesPerSecond: 2.5},
				Stats:          api.ProjectStats{Pages: 100, Errors: 3},
				FrontierCounts: api.FrontierCounts{QueuedHosts: 2, DueHosts: 1, QueuedURLs: 40}},
			{Name: "news", State: api.StateFailed, StateReason: "no \x1b[2Jroom"},
		},
		throughputSamples: []api.ThroughputSample{{PagesPerSecond: 0}, {PagesPerSecond: 1},
			{PagesPerSecond: 4}, {PagesPerSecond: 2}},
		hostListPage: &api.HostListPage{Hosts: []api.Host{{Host: "a.example", State: "due",
			CrawlDelay: api.Milliseconds(2 * time.Second), LastStatus: 200}}},
		activeVisits: []api.ActiveVisit{{URL: "http://a.example/x", RequestedAt: now.Add(-1500 * time.Millisecond)}},
		brakes:       []api.Brake{{Host: "b.example", Stop: true, Reason: "asked to", By: "operator", Since: now}},
	}
	want := `decorum, 2026-11-22 03:04:05Z   projects: 2   no delay was cut short

   PROJECT  STATE    PAGES/S  PAGES  ERRORS  HOSTS  DUE  QUEUED
>  books    running  2.5      100    3       2      1    40
   news     failed   0.0      0      0       0      0    0       no �[2Jroom

books, pages a second: ▁▂█▄  (most: 4.0)

HOST       STATE  QUEUED  DECLARED  CONFIGURED  MEDIAN  LAST  FAILED
a.example  due    0       2s        0s          0s      200   0

in flight: 1
    1.5s  http://a.example/x

HOST       DOES     UNTIL               BY        SINCE                 REASON
b.example  stopped  until it is lifted  operator  2026-11-22 03:04:05Z  asked to
`
	if got := v.render(now).String(); got != want {
		t.Errorf("it shows\n%s\nwant\n%s", got, want)
	}
	if got := (daemonSnapshot{}).render(now).String(); !strings.Contains(got, "projects: 0") {
		t.Errorf("an empty snapshot is rendered as\n%s", got)
	}
}
