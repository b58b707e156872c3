package politeness_test

import (
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
)

// TestLearnedPace feeds answers to NextVisit, one visit after the other, and compares the pace that
// the host has then.
func TestLearnedPace(t *testing.T) {
	const ok, busy, ill = 200, 429, 503
	repeat := func(status, n int) (list []int) {
		for range n {
			list = append(list, status)
		}
		return list
	}
	for _, tt := range []struct {
		name       string
		policy     politeness.Policy
		retryAfter time.Duration
		crawlDelay time.Duration
		statuses   [][]int
		want       time.Duration
	}{
		{"answers teach nothing", politeness.Policy{}, 0, 0, [][]int{repeat(ok, 99), {404, 500, 301}}, 0},
		{"a 503 makes the delay half as long again", politeness.Policy{}, 0, 0, [][]int{{ok, ill}},
			1500 * time.Millisecond},
		{"a Retry-After with it teaches no more", politeness.Policy{}, time.Hour, 0, [][]int{repeat(ok, 9), {ill}},
			1500 * time.Millisecond},
		{"further refusals are the same", politeness.Policy{}, 0, 0, [][]int{{ok, ill, ill, ill}},
			1500 * time.Millisecond},
		{"the next one makes it a quarter longer", politeness.Policy{}, 0, 0, [][]int{{ill, ok, ill}},
			1875 * time.Millisecond},
		{"no answer is no refusal", politeness.Policy{}, 0, 0, [][]int{{0, 0, 0}}, 0},
		{"429: as many requests as before, over the time until the next", politeness.Policy{}, 40 * sec, 0,
			[][]int{repeat(ok, 20), {busy}}, 3 * sec}, // 20 in 20 s and 40 s
		{"a short window at most doubles", politeness.Policy{}, 40 * sec, 0, [][]int{{ok, ok, busy}}, 2 * sec},
		{"up to the maximum", politeness.Policy{MaxLearnedDelay: 2 * sec}, 40 * sec, 0, [][]int{repeat(ok, 20), {busy}},
			2 * sec},
		{"off", politeness.Policy{MaxLearnedDelay: -1}, 40 * sec, 0, [][]int{repeat(ok, 20), {busy}}, 0},
		{"without a delay", politeness.Policy{Delay: politeness.NoDelay}, 0, 0, [][]int{{ill}}, 150 * time.Millisecond},
		{"from the Crawl-delay", politeness.Policy{}, 0, 4 * sec, [][]int{{ill}}, 6 * sec},
		{"nine answers change nothing", politeness.Policy{}, 0, 0, [][]int{{ill}, repeat(ok, 9)},
			1500 * time.Millisecond},
		{"ten make it faster", politeness.Policy{}, 0, 0, [][]int{{ill}, repeat(404, 10)},
			1453125 * time.Microsecond},
		{"down to the delay", politeness.Policy{}, 0, 0, [][]int{{ill}, repeat(ok, 130)}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.policy.JitterFunc = noJitter
			var health politeness.HostHealth
			now := noon
			for _, statuses := range tt.statuses {
				for _, status := range statuses {
					v := politeness.FinishedVisit{Start: now, End: now, Status: status, CrawlDelay: tt.crawlDelay,
						Health: health}
					if status == busy || status == ill {
						v.RetryAfter = tt.retryAfter
					}
					next := tt.policy.NextVisit(v)
					health, now = next.Health, next.Due
					if learned := health.LearnedPace.Delay; next.Delay < max(learned, tt.crawlDelay, tt.policy.Delay) ||
						learned > 0 && next.HostSlots != 1 {
						t.Errorf("a rest of %v and %d slots with a learned delay of %v", next.Delay,
							next.HostSlots, learned)
					}
				}
			}
			if got := health.LearnedPace.Delay; got != tt.want {
				t.Errorf("learned %v, want %v", got, tt.want)
			}
		})
	}
}

// TestLearnedPaceIsShared: the limiters of a process share the learned pace, as far as each wants
// it.
func TestLearnedPaceIsShared(t *testing.T) {
	hosts := politeness.NewSharedHosts()
	first, second := hosts.NewLimiter(politeness.LimiterConfig{}), hosts.NewLimiter(politeness.LimiterConfig{})
	second.SlowDown(noon, "a.test", 3*sec)
	second.SlowDown(noon, "a.test", 2*sec) // the slower one counts
	if got := first.LearnedPace("a.test").Delay; got != 3*sec {
		t.Errorf("the other crawl knows %v", got)
	}
	second.PostponeHost(noon, "a.test", noon, noon)
	for _, tt := range []struct{ limit, want time.Duration }{{time.Minute, 3 * sec}, {2 * sec, 2 * sec}, {0, 0}} {
		req := politeness.PermitRequest{NotBefore: noon, HostSlots: 4, MaxLearnedDelay: tt.limit}
		if tt.want > 0 {
			if _, d := first.Reserve(noon.Add(tt.want-1), "a.test", req); d.Action == decorum.Proceed {
				t.Errorf("limit %v: a visit before %v", tt.limit, tt.want)
			}
		}
		permit, d := first.Reserve(noon.Add(tt.want), "a.test", req)
		if d.Action != decorum.Proceed || (permit.HostSlots() == 1) != (tt.want > 0) {
			t.Errorf("limit %v: %+v with %d slots", tt.limit, d, permit.HostSlots())
		}
		first.ReleaseUnused(noon.Add(tt.want), permit)
	}
}

// TestPauseTeachesNothing: a 429 after a pause says nothing about the time that the requests before
// the pause need.
func TestPauseTeachesNothing(t *testing.T) {
	var health politeness.HostHealth
	now := noon
	for range 20 {
		next := politeness.Policy{}.NextVisit(politeness.FinishedVisit{Start: now, End: now, Status: 200,
			Health: health})
		health, now = next.Health, next.Due
	}
	now = now.Add(time.Hour)
	health = politeness.Policy{}.NextVisit(politeness.FinishedVisit{Start: now, End: now, Status: 429,
		Health: health}).Health
	if got, want := health.LearnedPace.Delay, 1500*time.Millisecond; got != want {
		t.Errorf("learned %v, want %v", got, want)
	}
}

// TestVisitsOfTwoCrawlsEndTogether: the visit that ends last keeps what the other has taught, and a
// crawl with a lower maximum does not shorten the delay of others.
func TestVisitsOfTwoCrawlsEndTogether(t *testing.T) {
	hosts := politeness.NewSharedHosts()
	policies := []politeness.Policy{{Delay: sec, JitterFunc: noJitter},
		{Delay: sec, MaxLearnedDelay: 1200 * time.Millisecond, JitterFunc: noJitter}}
	limiters := make([]*politeness.Limiter, len(policies))
	for i := range policies {
		limiters[i] = hosts.NewLimiter(politeness.LimiterConfig{})
		if _, d := limiters[i].Reserve(noon, "a.test", politeness.PermitRequest{NotBefore: noon,
			HostSlots: len(policies)}); d.Action != decorum.Proceed {
			t.Fatal(d)
		}
	}
	visit := politeness.FinishedVisit{Host: "a.test", Start: noon, End: noon, Status: 429}
	if _, before := limiters[0].EndVisit(policies[0], visit, 0); before.Delay != 0 {
		t.Errorf("learned %v before", before.Delay)
	}
	visit.Status = 200
	next, before := limiters[1].EndVisit(policies[1], visit, 0)
	const want = 1500 * time.Millisecond
	if got := limiters[0].LearnedPace("a.test").Delay; got != want || before.Delay != want {
		t.Errorf("learned %v, before the last visit %v, want %v", got, before.Delay, want)
	}
	if next.Delay != policies[1].MaxLearnedDelay {
		t.Errorf("the second crawl rests %v, want its maximum %v", next.Delay, policies[1].MaxLearnedDelay)
	}
}
