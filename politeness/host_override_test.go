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
	p := politeness.Policy{Delay: 2 * sec, Concurrency: 3, Jitter: calm, Hosts: map[string]politeness.Override{
		"swift.test": {Delay: new(politeness.NoDelay), Concurrency: new(8), Adaptive: new(-1.0), Expires: noon.Add(time.Hour)},
		"night.test": {Window: &night},
	}}
	for _, tt := range []struct {
		host  string
		after time.Duration // noon
		want  politeness.Rest
		open  bool
	}{
		{"other.test", 0, politeness.Rest{Gap: 7 * sec, Slots: 3}, true},
		{"swift.test", time.Hour - 1, politeness.Rest{Gap: 0, Slots: 8}, true},
		{"swift.test", time.Hour, politeness.Rest{Gap: 7 * sec, Slots: 3}, true}, // expired
		{"night.test", 0, politeness.Rest{Gap: 7 * sec, Slots: 3}, false},
	} {
		now := noon.Add(tt.after)
		tt.want.Due = now.Add(tt.want.Gap)
		q := p.For(tt.host, now)
		if got := q.Next(politeness.Visit{Start: now.Add(-7 * sec), End: now, Status: 200}); got != tt.want {
			t.Errorf("%s after %v: %+v, want %+v", tt.host, tt.after, got, tt.want)
		}
		if got := q.Window.Open(now); got != tt.open {
			t.Errorf("%s after %v: open %t", tt.host, tt.after, got)
		}
	}
	got := p.For("swift.test", noon).Next(politeness.Visit{Start: noon, End: noon, Status: 503, CrawlDelay: 9 * sec})
	if want := (politeness.Rest{Due: noon.Add(9 * sec), Gap: 9 * sec, Slots: 1, Strikes: 1}); got != want {
		t.Errorf("with a Crawl-delay: %+v, want %+v", got, want)
	}
}
