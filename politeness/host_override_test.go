package politeness_test

import (
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/politeness"
)

func TestOverride(t *testing.T) {
	night, err := politeness.ParseWindow("22:00-06:00", "")
	if err != nil {
		t.Fatal(err)
	}
	p := politeness.Policy{Delay: 2 * sec, Concurrency: 3, JitterFunc: noJitter,
		HostOverrides: map[string]politeness.HostOverride{
			"swift.test": {Delay: new(politeness.NoDelay), Concurrency: new(8), AdaptiveFactor: new(-1.0),
				Expires: noon.Add(time.Hour)},
			"night.test": {VisitWindow: &night},
		}}
	for _, tt := range []struct {
		host  string
		after time.Duration // noon
		want  politeness.NextVisit
		open  bool
	}{
		{"other.test", 0, politeness.NextVisit{Delay: 7 * sec, HostSlots: 3}, true},
		{"swift.test", time.Hour - 1, politeness.NextVisit{Delay: 0, HostSlots: 8}, true},
		{"swift.test", time.Hour, politeness.NextVisit{Delay: 7 * sec, HostSlots: 3}, true}, // expired
		{"night.test", 0, politeness.NextVisit{Delay: 7 * sec, HostSlots: 3}, false},
	} {
		now := noon.Add(tt.after)
		tt.want.Due = now.Add(tt.want.Delay)
		q := p.ForHost(tt.host, now)
		got := q.NextVisit(politeness.FinishedVisit{Start: now.Add(-7 * sec), End: now, Status: 200})
		if got.Health = healthAt(0); got != tt.want {
			t.Errorf("%s after %v: %+v, want %+v", tt.host, tt.after, got, tt.want)
		}
		if got := q.VisitWindow.IsOpen(now); got != tt.open {
			t.Errorf("%s after %v: open %t", tt.host, tt.after, got)
		}
	}
	got := p.ForHost("swift.test", noon).NextVisit(politeness.FinishedVisit{Start: noon, End: noon,
		Status: 503, CrawlDelay: 9 * sec})
	got.Health = healthAt(got.Health.ConsecutiveFailures)
	const rest = 27 * sec / 2 // the Crawl-delay, half as long again after the refusal
	if want := (politeness.NextVisit{Due: noon.Add(rest), Delay: rest, HostSlots: 1,
		Health: healthAt(1)}); got != want {
		t.Errorf("with a Crawl-delay: %+v, want %+v", got, want)
	}
}
