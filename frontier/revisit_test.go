package frontier_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/httpcache"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

const (
	hour = time.Hour
	day  = 24 * hour
)

var (
	adaptive = frontier.RevisitPolicy{Mode: frontier.AdaptiveRevisit, MinInterval: hour, MaxInterval: 30 * day}
	weekly   = frontier.RevisitPolicy{Mode: frontier.IntervalRevisit, Interval: 7 * day}
	epoch    = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
)

func TestPlanChanged(t *testing.T) {
	page := func(hash uint64, etag, modified string) storage.VisitHistorySummary {
		return storage.VisitHistorySummary{BodyHash: hash, ETag: etag, LastModified: modified}
	}
	for _, tt := range []struct {
		name   string
		before storage.VisitHistorySummary
		now    frontier.PageObservation
		want   bool
	}{
		{"304", page(1, `"a"`, ""), frontier.PageObservation{Status: 304, ETag: `"b"`}, false},
		{"same body", page(1, "", ""), frontier.PageObservation{Status: 200, Hash: 1}, false},
		{"other body", page(1, "", ""), frontier.PageObservation{Status: 200, Hash: 2}, true},
		{"same body, new validators", page(1, `"a"`, "x"),
			frontier.PageObservation{Status: 200, Hash: 1, ETag: `"b"`, LastModified: "y"}, false},
		{"other body, old validators", page(1, `"a"`, ""), frontier.PageObservation{Status: 200, Hash: 2, ETag: `"a"`},
			true},
		{"no body, same ETag", page(0, `"a"`, "x"),
			frontier.PageObservation{Status: 200, ETag: `"a"`, LastModified: "y"}, false},
		{"no body, other ETag", page(0, `W/"a"`, ""), frontier.PageObservation{Status: 200, ETag: `W/"b"`}, true},
		{"no body, other date", page(0, "", "x"), frontier.PageObservation{Status: 200, LastModified: "y"}, true},
		{"nothing to compare", page(0, `"a"`, ""), frontier.PageObservation{Status: 200, Hash: 2, LastModified: "y"},
			false},
	} {
		if got := weekly.Plan(&tt.before, tt.now).Changed; got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestPlanGiveUp: a page is given up after it was missing three times in a row. Neither a visit
// that finds the page missing nor the first visit can be compared.
func TestPlanGiveUp(t *testing.T) {
	var before *storage.VisitHistorySummary
	for i, tt := range []struct {
		status             int
		comparable, giveUp bool
	}{{200, false, false}, {404, false, false}, {410, false, false}, {200, true, false}, {404, false, false},
		{404, false, false}, {410, false, true}} {
		plan := weekly.Plan(before, frontier.PageObservation{At: epoch, Status: tt.status})
		if plan.IsComparable != tt.comparable || plan.GiveUp != tt.giveUp || plan.Changed {
			t.Errorf("visit %d: %+v, want %+v", i, plan, tt)
		}
		before = &plan.Summary
	}
}

// TestUpdateHistory checks the summary after a visit.
func TestUpdateHistory(t *testing.T) {
	before := storage.VisitHistorySummary{VisitedAt: epoch, Status: 200, ETag: `"a"`, LastModified: "x", BodyHash: 7,
		ComparedVisits: 2, ChangedVisits: 1, TotalComparedInterval: 2 * day,
		SitemapLastmod: epoch, ConsecutiveMissing: 2, EncodedBodyLen: 70}
	at := epoch.Add(day)
	for _, tt := range []struct {
		name     string
		observed frontier.PageObservation
		want     storage.VisitHistorySummary
	}{
		{"unchanged", frontier.PageObservation{At: at, Status: 304},
			storage.VisitHistorySummary{VisitedAt: at, Status: 304, ETag: `"a"`, LastModified: "x", BodyHash: 7,
				EncodedBodyLen: 70, ComparedVisits: 3, ChangedVisits: 1, TotalComparedInterval: 3 * day}},
		{"unchanged, with a new validator", frontier.PageObservation{At: at, Status: 304, ETag: `"b"`},
			storage.VisitHistorySummary{VisitedAt: at, Status: 304, ETag: `"b"`, LastModified: "x", BodyHash: 7,
				EncodedBodyLen: 70, ComparedVisits: 3, ChangedVisits: 1, TotalComparedInterval: 3 * day}},
		{"changed", frontier.PageObservation{At: at, Status: 200, Hash: 8, LastModified: "y", EncodedBodyLen: 80},
			storage.VisitHistorySummary{VisitedAt: at, Status: 200, LastModified: "y", BodyHash: 8, EncodedBodyLen: 80,
				ComparedVisits: 3, ChangedVisits: 2, TotalComparedInterval: 3 * day}},
		{"missing: no observation", frontier.PageObservation{At: at, Status: 404, ETag: `"404"`, Hash: 9},
			storage.VisitHistorySummary{VisitedAt: at, Status: 404, BodyHash: 7, ComparedVisits: 2, ChangedVisits: 1,
				TotalComparedInterval: 2 * day, ConsecutiveMissing: 3, EncodedBodyLen: 70}},
	} {
		if got := adaptive.Plan(&before, tt.observed).Summary; got != tt.want {
			t.Errorf("%s:\n%+v, want\n%+v", tt.name, got, tt.want)
		}
	}
	if before.ComparedVisits != 2 || before.ConsecutiveMissing != 2 {
		t.Error("the page before was written to")
	}
	first := adaptive.Plan(nil, frontier.PageObservation{At: at, Status: 200, Hash: 7, ETag: `"a"`}).Summary
	if want := (storage.VisitHistorySummary{VisitedAt: at, Status: 200, BodyHash: 7, ETag: `"a"`}); first != want {
		t.Errorf("a first visit leaves %+v, want %+v", first, want)
	}
}

// TestRevisitDelays checks how long pages rest.
func TestRevisitDelays(t *testing.T) {
	middle := time.Duration(math.Sqrt(float64(hour) * float64(30*day)))
	seen := func(n, x int, span time.Duration) *storage.VisitHistorySummary {
		return &storage.VisitHistorySummary{VisitedAt: epoch, BodyHash: 1, ComparedVisits: n, ChangedVisits: x,
			TotalComparedInterval: span}
	}
	same, other := frontier.PageObservation{Status: 200, Hash: 1}, frontier.PageObservation{Status: 200, Hash: 2}
	gone := frontier.PageObservation{Status: 410}
	for _, tt := range []struct {
		name     string
		policy   frontier.RevisitPolicy
		before   *storage.VisitHistorySummary
		after    time.Duration // since the last visit
		observed frontier.PageObservation
		want     time.Duration
	}{
		{"interval", weekly, seen(3, 3, 21*day), 7 * day, other, 7 * day},
		{"interval, new", weekly, nil, 0, same, 7 * day},
		{"interval, missing", weekly, seen(3, 3, 21*day), 7 * day, gone, 14 * day},
		{"new", adaptive, nil, 0, same, middle},
		{"new and missing", adaptive, nil, 0, gone, 2 * middle},
		{"never changes: twice as long", adaptive, seen(0, 0, 0), 2 * day, same, 4 * day},
		{"never changes: up to the longest", adaptive, seen(4, 0, 40*day), 29 * day, same, 30 * day},
		{"recalled early: by the mean", adaptive, seen(3, 0, 30*day), 0, same, 15 * day},
		{"always changes: down to the shortest", adaptive, seen(15, 15, 8*time.Minute), time.Minute, other, hour},
		{"clock set back", adaptive, seen(1, 0, 4*day), -day, same, 4 * day},
	} {
		observed := tt.observed
		observed.At = epoch.Add(tt.after)
		if got := tt.policy.Plan(tt.before, observed).Delay; got != tt.want {
			t.Errorf("%s: rests %v, want %v", tt.name, got, tt.want)
		}
	}
	// Half of the visits found a change. The estimator then says that the page changes every
	// 4 days / -ln(4.5/8.5).
	plan := adaptive.Plan(seen(7, 4, 28*day), frontier.PageObservation{At: epoch.Add(4 * day), Status: 304})
	page, delay := plan.Summary, plan.Delay
	want := time.Duration(math.Sqrt(float64(4*day) / -math.Log(4.5/8.5) * float64(middle)))
	if (delay - want).Abs() > time.Microsecond {
		t.Errorf("rests %v, want %v", delay, want)
	}
	if again := adaptive.DelayAfterFailure(page); again != delay {
		t.Errorf("rests %v after a failure, want %v as before", again, delay)
	}
}

// TestDelayFollowsChanges: a page that has always changed reaches the longest rest some time after
// it has stopped changing, and its history is bounded.
func TestDelayFollowsChanges(t *testing.T) {
	p, at, delay := storage.VisitHistorySummary{VisitedAt: epoch, BodyHash: 1}, epoch, hour
	visit := func(hash uint64) {
		at = at.Add(delay)
		plan := adaptive.Plan(&p, frontier.PageObservation{At: at, Status: 200, Hash: hash})
		p, delay = plan.Summary, plan.Delay
		if p.ComparedVisits > 16 || p.ChangedVisits > p.ComparedVisits || delay < hour || delay > 30*day {
			t.Fatalf("%+v, rests %v", p, delay)
		}
	}
	for i := range 1000 {
		visit(uint64(i + 2))
	}
	if delay > 10*hour {
		t.Errorf("a page that always changes rests %v", delay)
	}
	for range 40 {
		visit(5)
	}
	if delay != 30*day {
		t.Errorf("a page that changes no more rests %v", delay)
	}
}

// TestDelayIsBounded: the rest is within the bounds, whatever history a store holds.
func TestDelayIsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	number := func() int64 { return r.Int64() >> r.IntN(64) * int64(r.IntN(3)-1) }
	for range 100_000 {
		p := storage.VisitHistorySummary{VisitedAt: epoch.Add(time.Duration(number())), ComparedVisits: int(number()),
			ChangedVisits:         int(number()),
			TotalComparedInterval: time.Duration(number()), ConsecutiveMissing: r.IntN(80) - 9, BodyHash: r.Uint64N(3)}
		s := frontier.PageObservation{At: epoch, Status: []int{200, 304, 404}[r.IntN(3)], Hash: r.Uint64N(3)}
		if delay := adaptive.Plan(&p, s).Delay; delay < hour || delay > 30*day {
			t.Fatalf("%+v, seen %+v: rests %v", p, s, delay)
		}
	}
}

// TestFreshnessDelay: freshness is a floor under the time of the next visit, within its bounds. An estimate
// counts in adaptive mode only, and not beyond the longest interval.
func TestFreshnessDelay(t *testing.T) {
	const stated, estimated = "max-age=1", httpcache.ByHeuristic
	weeklyWith := func(limit time.Duration) frontier.RevisitPolicy {
		policy := weekly
		policy.MaxFreshness = limit
		return policy
	}
	adaptiveWith := func(maxInterval, stated, estimated time.Duration) frontier.RevisitPolicy {
		return frontier.RevisitPolicy{Mode: frontier.AdaptiveRevisit, MinInterval: hour, MaxInterval: maxInterval,
			MaxFreshness: stated, MaxHeuristicFreshness: estimated}
	}
	for _, tt := range []struct {
		name     string
		policy   frontier.RevisitPolicy
		freshFor time.Duration
		by       string
		want     time.Duration
	}{
		{"stale", weekly, 0, "", 0},
		{"stated", weekly, 10 * day, stated, 10 * day},
		{"beyond the default bound", weekly, 3650 * day, stated, 30 * day},
		{"beyond a bound", weeklyWith(8 * day), 10 * day, stated, 8 * day},
		{"off", weeklyWith(-1), 10 * day, stated, 0},
		{"stated, beyond the longest interval", adaptiveWith(2*day, 0, 0), 10 * day, stated, 10 * day},
		{"estimated, in interval mode", weekly, 10 * day, estimated, 0},
		{"estimated", adaptiveWith(30*day, 0, 0), 10 * hour, estimated, 10 * hour},
		{"estimated, beyond the default bound", adaptiveWith(30*day, 0, 0), 10 * day, estimated, day},
		{"estimated, beyond a bound", adaptiveWith(30*day, 0, 2*day), 10 * day, estimated, 2 * day},
		{"estimated, beyond the longest interval", adaptiveWith(2*hour, 0, 0), 10 * day, estimated, 2 * hour},
		{"estimated, beyond the bound of what is stated", adaptiveWith(30*day, hour, 0), 10 * day, estimated, hour},
		{"estimates are off", adaptiveWith(30*day, 0, -1), 10 * day, estimated, 0},
		{"freshness is off, and with it estimates", adaptiveWith(30*day, -1, 0), 10 * day, estimated, 0},
	} {
		o := frontier.PageObservation{At: epoch, Status: 200, FreshFor: tt.freshFor, FreshBy: tt.by}
		plan := tt.policy.Plan(nil, o)
		o.FreshFor = 0
		withoutFreshness := tt.policy.Plan(nil, o).Delay
		if got := tt.policy.FreshnessDelay(plan.Summary); got != tt.want || plan.Delay != max(got, withoutFreshness) {
			t.Errorf("%s: %v, so that the page rests for %v; want %v, and %v without freshness", tt.name, got,
				plan.Delay, tt.want, withoutFreshness)
		}
	}
}
