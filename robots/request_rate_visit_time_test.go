package robots

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// timeOfDay returns the time of day in UTC on a fixed day. TestDelayAt converts it to another zone.
func timeOfDay(h, m, s int) time.Time { return time.Date(2026, 7, 1, h, m, s, 0, time.UTC) }

func TestDelayAt(t *testing.T) {
	const (
		sec  = time.Second
		year = 365 * 24 * time.Hour
	)
	summer := time.FixedZone("", 2*60*60)
	for _, test := range []struct {
		name, body  string
		at          time.Time
		want, delay time.Duration // of DelayAt and of CrawlDelay
	}{
		{"nothing", "disallow: /", timeOfDay(9, 0, 0), 0, 0},
		{"seconds by default", "request-rate: 1/10", timeOfDay(9, 0, 0), 10 * sec, 0},
		{"seconds", "request-rate: 1/10s", timeOfDay(9, 0, 0), 10 * sec, 0},
		{"minutes", "Request-Rate: 1/5m", timeOfDay(9, 0, 0), 300 * sec, 0},
		{"hours", "request-rate: 1/2H", timeOfDay(9, 0, 0), 2 * time.Hour, 0},
		{"days", "request-rate: 24/1d", timeOfDay(9, 0, 0), time.Hour, 0},
		{"several documents", "request-rate: 3/10", timeOfDay(9, 0, 0), 3333333334, 0},
		{"a comment", "request-rate: 2/1 # two a second", timeOfDay(9, 0, 0), sec / 2, 0},
		{"in its hours", "request-rate: 1/5m 0800-1300", timeOfDay(8, 0, 0), 300 * sec, 0},
		{"in its hours, told in another zone", "request-rate: 1/5m 0800-1300",
			timeOfDay(8, 0, 0).In(summer), 300 * sec, 0},
		{"before its hours", "request-rate: 1/5m 0800-1300", timeOfDay(7, 59, 59), 0, 0},
		{"after its hours", "request-rate: 1/5m\t0800 - 13:00", timeOfDay(13, 0, 0), 0, 0},
		{"over midnight", "request-rate: 1/5m 2200-0600", timeOfDay(2, 0, 0), 300 * sec, 0},
		{"over midnight, by day", "request-rate: 1/5m 2200-0600", timeOfDay(12, 0, 0), 0, 0},
		{"the longest of them", "request-rate: 1/5\nrequest-rate: 1/9 0800-1300\nrequest-rate: 1/60 1300-1400",
			timeOfDay(9, 0, 0), 9 * sec, 0},
		{"the longest of the same hours", "request-rate: 1/9\nrequest-rate: 1/5", timeOfDay(9, 0, 0), 9 * sec, 0},
		{"a longer Crawl-delay", "crawl-delay: 20\nrequest-rate: 1/9", timeOfDay(9, 0, 0), 20 * sec, 20 * sec},
		{"a shorter Crawl-delay", "crawl-delay: 2\nrequest-rate: 1/9", timeOfDay(9, 0, 0), 9 * sec, 2 * sec},
		{"too much", "request-rate: 1/99999999999999999999", timeOfDay(9, 0, 0), year, 0},
		{"far too much", "request-rate: 1/1" + strings.Repeat("0", 400), timeOfDay(9, 0, 0), year, 0},
		{"far too much of both", "request-rate: 1" + strings.Repeat("0", 400) + "/1" + strings.Repeat("0", 400),
			timeOfDay(9, 0, 0), year, 0},
		{"no time", "request-rate: 5/0", timeOfDay(9, 0, 0), 0, 0},
		{"invalid", "request-rate: 10\nrequest-rate: 0/5\nrequest-rate: 1/\nrequest-rate: /5\nrequest-rate: " +
			"1/5w\nrequest-rate: 1/s" +
			"\nrequest-rate: -1/5\nrequest-rate: 1/5 night\nrequest-rate: 1/5 0800-0800\nrequest-rate: 1/5 " +
			"0860-0900\nrequest-rate:", timeOfDay(9, 0, 0), 0, 0},
		{"another's", "user-agent: y\ndisallow: /y\nuser-agent: z\nrequest-rate: 1/9", timeOfDay(9, 0, 0), 0, 0},
		{"of both", "user-agent: y\nrequest-rate: 1/9", timeOfDay(9, 0, 0), 9 * sec, 0},
		{"its own and another's", "request-rate: 1/4\nuser-agent: y\nrequest-rate: 1/9",
			timeOfDay(9, 0, 0), 4 * sec, 0},
		{"a delay of both keeps its agents", "request-rate: 1/4\nuser-agent: y\ncrawl-delay: 9",
			timeOfDay(9, 0, 0), 9 * sec, 9 * sec},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, d := range []Dialect{Google, Yandex, GoogleOSS} {
				rules := Parse([]byte("user-agent: x\n"+test.body), d).RulesFor(AgentFromName("x"))
				if got := rules.DelayAt(test.at); got != test.want {
					t.Errorf("%v: pause %v, want %v", d, got, test.want)
				}
				if got, ok := rules.CrawlDelay(); ok != (test.delay > 0) || got != test.delay {
					t.Errorf("%v: Crawl-delay %v, want %v", d, got, test.delay)
				}
			}
		})
	}
}

func TestNextOpen(t *testing.T) {
	for _, test := range []struct {
		name, body string
		at, want   time.Time
	}{
		{"nothing", "disallow: /", timeOfDay(9, 0, 30), timeOfDay(9, 0, 30)},
		{"before", "visit-time: 0600-0845", timeOfDay(5, 59, 30), timeOfDay(6, 0, 0)},
		{"open", "visit-time: 0600-0845", timeOfDay(8, 44, 59), timeOfDay(8, 44, 59)},
		{"over", "Visit-time: 0600-0845 # UTC", timeOfDay(8, 45, 0), timeOfDay(30, 0, 0)},
		{"over midnight", "visit-time: 22:00-06:00", timeOfDay(1, 0, 0), timeOfDay(1, 0, 0)},
		{"over midnight, closed", "visit-time: 2200-0600", timeOfDay(6, 0, 0), timeOfDay(22, 0, 0)},
		{"until midnight", "visit-time: 2200-2400", timeOfDay(0, 0, 0), timeOfDay(22, 0, 0)},
		{"from 24:00 on", "visit-time: 2400-0600", timeOfDay(23, 0, 0), timeOfDay(24, 0, 0)},
		{"several lines", "visit-time: 2200-2300\nvisit-time: 1200-1300", timeOfDay(9, 0, 0), timeOfDay(12, 0, 0)},
		{"several lines, one open", "visit-time: 2200-2300\nvisit-time: 0800-1300",
			timeOfDay(9, 0, 30), timeOfDay(9, 0, 30)},
		{"invalid", "visit-time: 9-17\nvisit-time: 0900\nvisit-time: 0900-0900\nvisit-time: 0900-2500\nvisit-time:",
			timeOfDay(3, 0, 0), timeOfDay(3, 0, 0)},
		{"another's", "disallow:\nuser-agent: y\nvisit-time: 0600-0845", timeOfDay(9, 0, 0), timeOfDay(9, 0, 0)},
	} {
		t.Run(test.name, func(t *testing.T) {
			rules := Parse([]byte("user-agent: x\n"+test.body), Google).RulesFor(AgentFromName("x"))
			if got := rules.NextAllowedTime(test.at); !got.Equal(test.want) {
				t.Errorf("opens %v, want %v", got, test.want)
			}
		})
	}
}

// TestPaceShapesNoGroups proves GRP-08 for Request-rate and Visit-time in every dialect.
func TestPaceShapesNoGroups(t *testing.T) {
	body := []byte("user-agent: x\nrequest-rate: 1/5\nvisit-time: 0600-0845\nuser-agent: y\ndisallow: /")
	for _, d := range []Dialect{Google, Yandex, GoogleOSS} {
		if rules := Parse(body, d).RulesFor(AgentFromName("x")); rules.Check(robotstest.URL(t, "http://h/")).Allowed {
			t.Errorf("%v: x has no part in the rule", d)
		}
	}
}

// TestPaceIsAnExtension proves that NoExtensions ignores Request-rate and Visit-time, also in the
// Yandex dialect (SYN-14).
func TestPaceIsAnExtension(t *testing.T) {
	body := []byte("user-agent: *\ncrawl-delay: 2\nrequest-rate: 1/5\nvisit-time: 0600-0845")
	for d, want := range map[Dialect]time.Duration{Google: 0, Yandex: 2 * time.Second, GoogleOSS: 0} {
		rules := ParseOptions{Dialect: d, NoExtensions: true}.Parse(body).RulesFor(Agent{})
		if got := rules.DelayAt(timeOfDay(9, 0, 0)); got != want {
			t.Errorf("%v: pause %v, want %v", d, got, want)
		}
		if at := timeOfDay(9, 0, 0); !rules.NextAllowedTime(at).Equal(at) {
			t.Errorf("%v: Visit-time is read", d)
		}
	}
}

// TestPaceIsBounded proves that the rules of a file with thousands of hours stay small.
func TestPaceIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("user-agent: *\n")
	hhmm := func(minutes int) string { return fmt.Sprintf("%02d%02d", minutes/60, minutes%60) }
	for i := range 1000 {
		b.WriteString("request-rate: 1/" + hhmm(i) + " " + hhmm(i) + "-" + hhmm(i+1) + "\nvisit-time: " +
			hhmm(i) + "-" + hhmm(i+1) + "\n")
	}
	rules := Parse([]byte(b.String()), Google).RulesFor(Agent{})
	if n := len(rules.RateAndVisitTimeLines()); n > 2*maxTimeRanges+1 {
		t.Errorf("%d lines are kept", n)
	}
	if got, want := rules.DelayAt(timeOfDay(20, 0, 0)), 1639*time.Second; got != want {
		t.Errorf("pause %v, want the longest of what was left out, %v", got, want)
	}
}

func TestPaceIsExplained(t *testing.T) {
	rules := rulesOf("request-rate: 1/5m 0800-1300\nvisit-time: 0600-08:45")
	want := []string{"request-rate: 1/300s 0800-1300", "visit-time: 0600-0845"}
	if got := rules.Explain(robotstest.URL(t, "http://h/")).PaceLines; !slices.Equal(got, want) {
		t.Errorf("explained as %q, want %q", got, want)
	}
}

func FuzzPace(f *testing.F) {
	for _, s := range []string{"request-rate: 1/5m 0800-1300", "visit-time: 2200-0600",
		"request-rate: 1/0", "visit-time: 2400-2400"} {
		f.Add(s, int64(1774746000))
	}
	f.Fuzz(func(t *testing.T, body string, unix int64) {
		rules := Parse([]byte("user-agent: *\n"+body), Google).RulesFor(Agent{})
		at := time.Unix(unix%(1<<36), 5)
		if p := rules.DelayAt(at); p < 0 || p > 365*24*time.Hour {
			t.Errorf("pause %v", p)
		}
		nextOpen := rules.NextAllowedTime(at)
		if nextOpen.Before(at) || nextOpen.Sub(at) > 24*time.Hour || !rules.NextAllowedTime(nextOpen).Equal(nextOpen) {
			t.Errorf("at %v it opens %v, and then %v", at.UTC(), nextOpen.UTC(), rules.NextAllowedTime(nextOpen).UTC())
		}
	})
}
