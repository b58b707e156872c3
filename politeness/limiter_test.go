package politeness_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
)

// A permitCall is one call of Reserve on the timeline of a test.
type permitCall struct {
	at    time.Duration // after noon
	host  string
	due   time.Duration // NotBefore, after noon
	early time.Duration // 0: admitted
}

func TestReserve(t *testing.T) {
	l := politeness.NewLimiter(politeness.LimiterConfig{})
	checkPermits(t, l, []permitCall{
		{0, "a", 0, 0},
		{0, "a", 1, 1}, // not due by a nanosecond
		{sec, "a", 3 * sec, 2 * sec},
	})
	l.SetNextVisitAndCountBytes("a", politeness.NextVisit{Due: noon.Add(11 * sec), Delay: 10 * sec}, 0)
	checkPermits(t, l, []permitCall{
		{sec, "b", 0, 0}, // another host is not affected
		{11 * sec, "a", 11 * sec, 0},
		// The store has lost the due time, but the Limiter remembers it.
		{6 * sec, "a", 0, 5 * sec},
		{11*sec - 2*time.Millisecond, "a", 0, 2 * time.Millisecond},
	})
	// A shorter rest does not end a longer one.
	l.SetNextVisitAndCountBytes("a", politeness.NextVisit{Due: noon.Add(6 * sec), Delay: sec}, 0)
	checkPermits(t, l, []permitCall{{7 * sec, "a", 0, 4 * sec}})
	l.SetNextVisitAndCountBytes("a", politeness.NextVisit{Due: noon.Add(31 * sec), Delay: 20 * sec}, 0)
	checkPermits(t, l, []permitCall{{12 * sec, "a", 0, 19 * sec}, {31 * sec, "a", 31 * sec, 0}})
}

func checkPermits(t *testing.T, l *politeness.Limiter, permitCalls []permitCall) {
	t.Helper()
	for _, m := range permitCalls {
		p, d := l.Reserve(noon.Add(m.at), m.host, politeness.PermitRequest{NotBefore: noon.Add(m.due)})
		err := d.Err()
		switch {
		case m.early == 0 && err != nil:
			t.Errorf("%+v: %v", m, err)
		case m.early == 0 && (!p.WasIssued() || p.Host() != m.host):
			t.Errorf("%+v: permit %+v", m, p)
		case m.early > 0 && (d.Action != decorum.Postpone || d.Reason != decorum.ReasonHostRest ||
			!errors.Is(err, decorum.NotDue)):
			t.Errorf("%+v: error %v, want ReasonHostRest", m, err)
		case m.early > 0 && ((d.Rest-m.early).Abs() > time.Microsecond || !d.Until.Equal(noon.Add(m.at+d.Rest))):
			t.Errorf("%+v: too early by %v, until %v", m, d.Rest, d.Until)
		case m.early > 0 && p.WasIssued():
			t.Errorf("%+v: a permit and an error", m)
		}
		if err == nil {
			l.ReleaseUnused(noon, p)
		}
	}
}

func TestZeroPermitIsNotValid(t *testing.T) {
	if (politeness.Permit{}).WasIssued() {
		t.Error("the zero Permit is valid")
	}
}

func TestRequestsPerSecond(t *testing.T) {
	l := politeness.NewLimiter(politeness.LimiterConfig{CrawlRequestsPerSecond: 4})
	began := 0
	for at := time.Duration(0); at < 10*sec; {
		now := noon.Add(at)
		grant, wait := l.AvailableVisits(now, 3)
		if grant == 0 {
			if wait <= 0 {
				t.Fatalf("at %v: no grant and no wait", at)
			}
			at += wait
			continue
		}
		for range 3 { // more than AvailableVisits granted
			if p, d := l.Reserve(now, "a", politeness.PermitRequest{NotBefore: now}); d.Action == decorum.Proceed {
				began++
				l.ReleaseUnused(noon, p)
			}
		}
	}
	if began < 39 || began > 41 {
		t.Errorf("%d requests began in 10 s at 4 a second", began)
	}
}

// TestTinyRates: a rate of one request in years admits one request and refuses the next, although
// the time until the next exceeds the range of a Duration.
func TestTinyRates(t *testing.T) {
	for _, rate := range []float64{1e-9, 1e-10, 1e-300} {
		l := politeness.NewLimiter(politeness.LimiterConfig{CrawlRequestsPerSecond: rate, CrawlBytesPerSecond: rate})
		if _, d := l.Reserve(noon, "first.test",
			politeness.PermitRequest{NotBefore: noon}); d.Action != decorum.Proceed {
			t.Fatal(d.Err())
		}
		if _, d := l.Reserve(noon, "a.test",
			politeness.PermitRequest{NotBefore: noon}); d.Reason != decorum.ReasonRequestRate ||
			d.Until.Before(noon.AddDate(0, 11, 0)) {
			t.Errorf("%g a second: the second request: %v, want a long wait", rate, d.Err())
		}
		if grant, wait := l.AvailableVisits(noon, 1); grant != 0 || wait < 300*24*time.Hour {
			t.Errorf("%g a second: %d requests may begin, or in %v", rate, grant, wait)
		}
	}
	l := politeness.NewLimiter(politeness.LimiterConfig{CrawlRequestsPerSecond: 1})
	if _, d := l.Reserve(noon, "first.test", politeness.PermitRequest{NotBefore: noon}); d.Action != decorum.Proceed {
		t.Fatal(d.Err())
	}
	l.SetRateShare(noon, 0) // other processes have the whole rate
	if _, d := l.Reserve(noon, "a.test", politeness.PermitRequest{NotBefore: noon}); d.Action == decorum.Proceed {
		t.Error("with a rate share of 0 a request is admitted")
	}
}

func TestBytesPerSecond(t *testing.T) {
	l := politeness.NewLimiter(politeness.LimiterConfig{CrawlBytesPerSecond: 1000})
	if grant, _ := l.AvailableVisits(noon, 5); grant != 5 {
		t.Fatalf("granted %d of 5 before anything was fetched", grant)
	}
	l.SetNextVisitAndCountBytes("a", politeness.NextVisit{Due: noon, Delay: 0}, 11_000)
	grant, wait := l.AvailableVisits(noon, 5)
	if grant != 0 || wait < 9*sec || wait > 11*sec {
		t.Errorf("after 11 kB at 1 kB/s: granted %d, wait %v; want a wait of about 10 s", grant, wait)
	}
	if grant, _ := l.AvailableVisits(noon.Add(wait), 5); grant == 0 {
		t.Error("still no grant after the wait")
	}
}

func TestLimiterForgetsHostsThatAreDue(t *testing.T) {
	l := politeness.NewLimiter(politeness.LimiterConfig{})
	for i := range 100_000 {
		end := noon.Add(time.Duration(i) * time.Millisecond)
		l.SetNextVisitAndCountBytes(fmt.Sprint(i), politeness.NextVisit{Due: end.Add(sec), Delay: sec}, 0)
	}
	if n := l.HostCount(); n > 10_000 {
		t.Errorf("remembers %d hosts, although only 1,000 rest", n)
	}
}

// TestSlots: a host has no more concurrent visits than its slots, even if the store leases more
// URLs.
func TestSlots(t *testing.T) {
	l := politeness.NewLimiter(politeness.LimiterConfig{})
	admit := func(slots int, want bool) politeness.Permit {
		t.Helper()
		p, d := l.Reserve(noon, "a", politeness.PermitRequest{NotBefore: noon, HostSlots: slots})
		if (d.Action == decorum.Proceed) != want {
			t.Errorf("with %d slots: %v, want admitted: %v", slots, d.Err(), want)
		}
		return p
	}
	first := admit(2, true)
	admit(2, true)
	admit(2, false)
	l.ReleaseUnused(noon, first)
	admit(2, true)
	l.SetNextVisitAndCountBytes("a", politeness.NextVisit{Due: noon}, 0)
	l.SetNextVisitAndCountBytes("a", politeness.NextVisit{Due: noon}, 0)
	admit(0, true) // no visit is under way; 0 slots mean 1
	admit(0, false)
}

// TestAShortDelayEndsNoLongerOne: of two concurrent visits, one set a rest of an hour.
func TestAShortDelayEndsNoLongerOne(t *testing.T) {
	l := politeness.NewLimiter(politeness.LimiterConfig{})
	l.SetNextVisitAndCountBytes("a", politeness.NextVisit{Due: noon.Add(time.Hour), Delay: time.Hour}, 0)
	l.SetNextVisitAndCountBytes("a", politeness.NextVisit{Due: noon.Add(sec)}, 0)
	checkPermits(t, l, []permitCall{{at: 2 * sec, host: "a", early: time.Hour - 2*sec}})
}
