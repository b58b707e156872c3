package politeness_test

import (
	"math"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/politeness"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const sec = time.Second

func noJitter() float64 { return 0 }

// healthAt returns the health of a host after consecutive failures.
func healthAt(failures int) politeness.HostHealth {
	return politeness.HostHealth{ConsecutiveFailures: failures}
}

func TestNext(t *testing.T) {
	plain := politeness.Policy{JitterFunc: noJitter}
	fast := politeness.Policy{Delay: politeness.NoDelay, AdaptiveFactor: -1, JitterFunc: noJitter}
	tests := []struct {
		name   string
		policy politeness.Policy
		visit  politeness.FinishedVisit // Start is 100 ms before End, which is noon, unless given
		want   politeness.NextVisit     // Due follows from Gap
	}{
		{"the default is one second", plain, politeness.FinishedVisit{Status: 200},
			politeness.NextVisit{Delay: sec, HostSlots: 1}},
		{"DELAY-08 the longer of policy and Crawl-delay", plain,
			politeness.FinishedVisit{Status: 200, CrawlDelay: 10 * sec},
			politeness.NextVisit{Delay: 10 * sec, HostSlots: 1}},
		{"DELAY-03 a shorter Crawl-delay speeds nothing up", plain,
			politeness.FinishedVisit{Status: 200, CrawlDelay: sec / 2},
			politeness.NextVisit{Delay: sec, HostSlots: 1}},
		{"DELAY-12 a Crawl-delay means one at a time", politeness.Policy{Concurrency: 4, JitterFunc: noJitter},
			politeness.FinishedVisit{Status: 200, CrawlDelay: sec / 2}, politeness.NextVisit{Delay: sec, HostSlots: 1}},
		{"several at a time where none is asked for", politeness.Policy{Concurrency: 4, JitterFunc: noJitter},
			politeness.FinishedVisit{Status: 200}, politeness.NextVisit{Delay: sec, HostSlots: 4}},
		{"a slow answer earns as long a rest", plain, politeness.FinishedVisit{Start: noon.Add(-7 * sec), Status: 200},
			politeness.NextVisit{Delay: 7 * sec, HostSlots: 1}},
		{"adaptive twice", politeness.Policy{AdaptiveFactor: 2, JitterFunc: noJitter},
			politeness.FinishedVisit{Start: noon.Add(-7 * sec), Status: 200},
			politeness.NextVisit{Delay: 14 * sec, HostSlots: 1}},
		{"adaptive off", politeness.Policy{AdaptiveFactor: -1, JitterFunc: noJitter},
			politeness.FinishedVisit{Start: noon.Add(-7 * sec), Status: 200},
			politeness.NextVisit{Delay: sec, HostSlots: 1}},
		{"no delay of its own", fast, politeness.FinishedVisit{Status: 200}, politeness.NextVisit{HostSlots: 1}},
		{"no delay of its own, but the host's", fast, politeness.FinishedVisit{Status: 200, CrawlDelay: 3 * sec},
			politeness.NextVisit{Delay: 3 * sec, HostSlots: 1}},
		{"DELAY-13 Retry-After", plain, politeness.FinishedVisit{Status: 429, RetryAfter: 90 * sec},
			politeness.NextVisit{Delay: 90 * sec, HostSlots: 1, Health: healthAt(1)}},
		{"Retry-After is never cut short", politeness.Policy{MaxRetryAfter: 60 * sec, JitterFunc: noJitter},
			politeness.FinishedVisit{Status: 503, RetryAfter: 90 * sec},
			politeness.NextVisit{Delay: 90 * sec, HostSlots: 1, Health: healthAt(1)}},
		{"but to a year", plain, politeness.FinishedVisit{Status: 200, RetryAfter: 9223372036 * sec},
			politeness.NextVisit{Delay: 365 * 24 * time.Hour, HostSlots: 1}},
		{"Retry-After with a 200", plain, politeness.FinishedVisit{Status: 200, RetryAfter: 90 * sec},
			politeness.NextVisit{Delay: 90 * sec, HostSlots: 1}},
		{"DELAY-13 first 503", plain, politeness.FinishedVisit{Status: 503},
			politeness.NextVisit{Delay: 5 * sec, HostSlots: 1, Health: healthAt(1)}},
		{"DELAY-13 third 503 in a row", plain, politeness.FinishedVisit{Status: 503, Health: healthAt(2)},
			politeness.NextVisit{Delay: 20 * sec, HostSlots: 1, Health: healthAt(3)}},
		{"no answer", plain, politeness.FinishedVisit{Health: healthAt(1)},
			politeness.NextVisit{Delay: 10 * sec, HostSlots: 1, Health: healthAt(2)}},
		{"back-off is bounded", plain, politeness.FinishedVisit{Status: 503, Health: healthAt(1 << 40)},
			politeness.NextVisit{Delay: time.Hour, HostSlots: 1, Health: healthAt(11)}},
		{"success recovers one step", plain, politeness.FinishedVisit{Status: 200, Health: healthAt(3)},
			politeness.NextVisit{Delay: 10 * sec, HostSlots: 1, Health: healthAt(2)}},
		{"DELAY-14 403 says nothing of load", plain, politeness.FinishedVisit{Status: 403},
			politeness.NextVisit{Delay: sec, HostSlots: 1}},
		{"DELAY-14 404 recovers like a success", plain, politeness.FinishedVisit{Status: 404, Health: healthAt(1)},
			politeness.NextVisit{Delay: sec, HostSlots: 1}},
		{"jitter adds at most a quarter", politeness.Policy{JitterFunc: func() float64 { return 0.999999999 }},
			politeness.FinishedVisit{Status: 503},
			politeness.NextVisit{Delay: 6249999998, HostSlots: 1, Health: healthAt(1)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := tt.visit
			v.End = noon
			if v.Start.IsZero() {
				v.Start = noon.Add(-sec / 10)
			}
			want := tt.want
			want.Due = noon.Add(want.Delay)
			got := tt.policy.NextVisit(v)
			got.Health = healthAt(got.Health.ConsecutiveFailures)
			if got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestBackoffRecoversStepByStep(t *testing.T) {
	p := politeness.Policy{JitterFunc: noJitter}
	statuses := []int{503, 503, 503, 200, 200, 200, 200}
	want := []time.Duration{5 * sec, 10 * sec, 20 * sec, 10 * sec, 5 * sec, sec, sec}
	failures := 0
	for i, status := range statuses {
		next := p.NextVisit(politeness.FinishedVisit{Start: noon, End: noon, Status: status,
			Health: healthAt(failures)})
		if next.Delay != want[i] {
			t.Errorf("visit %d (%d): rest %v, want %v", i, status, next.Delay, want[i])
		}
		failures = next.Health.ConsecutiveFailures
	}
}

func TestValidate(t *testing.T) {
	for _, p := range []politeness.Policy{
		{Delay: -2}, {Concurrency: -1}, {MaxCrawlDelay: -1}, {InitialBackoff: -1},
		{MaxBackoff: -1}, {MaxRetryAfter: -1}, {BackoffFactor: 0.5}, {BackoffFactor: 101}, {BackoffFactor: math.NaN()},
		{AdaptiveFactor: 1e9}, {AdaptiveFactor: math.NaN()}, {AdaptiveFactor: math.Inf(1)},
	} {
		if p.Validate() == nil {
			t.Errorf("%+v is valid", p)
		}
	}
	for _, o := range []politeness.HostOverride{{Delay: new(time.Duration(-2))},
		{AdaptiveFactor: new(math.NaN())}, {Concurrency: new(-1)}} {
		if (politeness.Policy{HostOverrides: map[string]politeness.HostOverride{"a.test": o}}).Validate() == nil {
			t.Errorf("%+v is valid", o)
		}
	}
	for _, p := range []politeness.Policy{{}, {Delay: politeness.NoDelay, AdaptiveFactor: -1}} {
		if err := p.Validate(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// The random part of back-off is the same for the same seed, host and number of failures, differs
// for any other, and is spread over the whole quarter.
func TestJitterIsOfItsSeed(t *testing.T) {
	delay := func(seed uint64, host string, failures int) time.Duration {
		p := politeness.Policy{JitterSeed: seed, MaxBackoff: 1000 * time.Hour}
		return p.NextVisit(politeness.FinishedVisit{Host: host, Start: noon, End: noon, Status: 503,
			Health: healthAt(failures)}).Delay
	}
	if first := delay(1, "a.test", 0); delay(1, "a.test", 0) != first {
		t.Error("the random part differs for the same seed, host and failures")
	}
	seen := map[time.Duration]bool{}
	minDelay, maxDelay := time.Hour, time.Duration(0)
	for seed := range uint64(10) {
		for _, host := range []string{"a.test", "b.test"} {
			for failures := range 5 {
				d := delay(seed, host, failures) >> failures
				seen[d], minDelay, maxDelay = true, min(minDelay, d), max(maxDelay, d)
			}
		}
	}
	if len(seen) < 95 || minDelay < 5*sec || minDelay > 5100*time.Millisecond || maxDelay > 6250*time.Millisecond ||
		maxDelay < 6150*time.Millisecond {
		t.Errorf("%d of 100 delays are different, from %v to %v", len(seen), minDelay, maxDelay)
	}
}

// DelayReason names the longest of the delays.
func TestDelayReason(t *testing.T) {
	plain := politeness.Policy{JitterFunc: noJitter}
	for want, tt := range map[politeness.DelayReason]struct {
		policy politeness.Policy
		visit  politeness.FinishedVisit
	}{
		"": {politeness.Policy{Delay: politeness.NoDelay, AdaptiveFactor: -1},
			politeness.FinishedVisit{Status: 200}},
		politeness.ConfiguredDelay: {plain, politeness.FinishedVisit{Status: 200, CrawlDelay: sec}},
		politeness.RobotsDelay:     {plain, politeness.FinishedVisit{Status: 200, CrawlDelay: 10 * sec}},
		politeness.LearnedDelay: {plain, politeness.FinishedVisit{Status: 200,
			Health: politeness.HostHealth{LearnedPace: politeness.LearnedPace{Delay: 20 * sec}}}},
		politeness.AdaptiveDelay:   {plain, politeness.FinishedVisit{Status: 200, Start: noon.Add(-7 * sec)}},
		politeness.RetryAfterDelay: {plain, politeness.FinishedVisit{Status: 429, RetryAfter: 90 * sec}},
		politeness.BackoffDelay:    {plain, politeness.FinishedVisit{Status: 503, RetryAfter: 2 * sec}},
	} {
		v := tt.visit
		v.End = noon
		if v.Start.IsZero() {
			v.Start = noon.Add(-sec / 10)
		}
		if got := tt.policy.DelayReason(v, tt.policy.NextVisit(v)); got != want {
			t.Errorf("%+v: %q, want %q", v, got, want)
		}
	}
}
