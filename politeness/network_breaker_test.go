package politeness_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
)

// A breakerFixture holds the Limiter of a NetworkBreaker and the time of the test.
type breakerFixture struct {
	t      *testing.T
	limits *politeness.Limiter
	now    time.Time
}

func newBreakerFixture(t *testing.T) *breakerFixture {
	return &breakerFixture{t: t, limits: politeness.NewLimiter(politeness.LimiterConfig{}), now: noon}
}

func (c *breakerFixture) advance(d time.Duration) { c.now = c.now.Add(d) }

// failVisit records a failed visit to host that begins and ends now.
func (c *breakerFixture) failVisit(host string, e politeness.MachineFaultLikelihood) *politeness.UndecidedFailure {
	failure := politeness.UnansweredVisit{Host: host, Start: c.now, MachineFaultLikelihood: e,
		MachineFaultReason: "the test says so"}
	return c.limits.NetworkBreaker().RecordFailure(c.now, failure)
}

// failDomains records failed visits to hosts of n domains, and returns the UndecidedFailures.
func (c *breakerFixture) failDomains(domains int) (pending []*politeness.UndecidedFailure) {
	for i := range domains {
		pending = append(pending, c.failVisit(fmt.Sprintf("www.site%d.test", i), politeness.PossiblyMachine))
	}
	return pending
}

func (c *breakerFixture) recordAnswer(host string) {
	c.limits.NetworkBreaker().RecordAnswer(host, c.now)
}

// wantFault fails the test unless the failure is charged as want says.
func (c *breakerFixture) wantFault(d *politeness.UndecidedFailure, want politeness.FaultAttribution) {
	c.t.Helper()
	if got, _, _ := d.DecideFault(c.now); got != want {
		c.t.Errorf("after %v: charged to %d, want %d", c.now.Sub(noon), got, want)
	}
}

// wantOpen fails the test unless the breaker's state is want.
func (c *breakerFixture) wantOpen(want bool) {
	c.t.Helper()
	if s := c.limits.NetworkBreaker().State(); s.Open != want {
		c.t.Errorf("after %v: open is %v, want %v", c.now.Sub(noon), s.Open, want)
	}
}

// availableVisits returns how many of ten visits AvailableVisits lets begin.
func (c *breakerFixture) availableVisits() int {
	n, _ := c.limits.AvailableVisits(c.now, 10)
	return n
}

func TestBreakerDecides(t *testing.T) {
	const host, machine, undecided = politeness.HostFault, politeness.MachineFault, politeness.UndecidedFault
	t.Run("few hosts are to blame themselves", func(t *testing.T) {
		c := newBreakerFixture(t)
		for _, d := range c.failDomains(7) {
			c.wantFault(d, host)
		}
		c.wantOpen(false)
	})
	t.Run("many hosts are not", func(t *testing.T) {
		c := newBreakerFixture(t)
		c.failDomains(7) // shows the breaker that there are many domains
		pending := c.failDomains(8)
		c.advance(2 * time.Second)
		c.wantFault(pending[7], undecided)
		c.advance(time.Second)
		c.wantFault(pending[7], machine)
		c.wantOpen(true)
		c.wantFault(c.failVisit("another.test", politeness.PossiblyMachine), machine)
	})
	t.Run("an answer blames those that failed before", func(t *testing.T) {
		c := newBreakerFixture(t)
		c.failDomains(7)
		d := c.failVisit("www.site8.test", politeness.PossiblyMachine)
		c.wantFault(d, undecided)
		c.recordAnswer("good.test")
		c.wantFault(d, host)
	})
	t.Run("names of one domain are one host", func(t *testing.T) {
		c := newBreakerFixture(t)
		c.failDomains(8)
		c.recordAnswer("good.test")
		for i := range 1000 {
			c.failVisit(fmt.Sprintf("%d.hostile.test", i), politeness.PossiblyMachine)
		}
		d := c.failVisit("last.hostile.test", politeness.PossiblyMachine)
		c.advance(5 * time.Second)
		c.wantFault(d, undecided)
		c.advance(5 * time.Second)
		c.wantFault(d, host)
		c.wantOpen(false)
	})
	t.Run("one host without a route is enough", func(t *testing.T) {
		c := newBreakerFixture(t)
		d := c.failVisit("a.test", politeness.ProbablyMachine)
		c.wantFault(d, undecided)
		c.advance(3 * time.Second)
		c.wantFault(d, machine)
		c.wantOpen(true)
	})
	t.Run("where half of the hosts are dead, many fail in a row", func(t *testing.T) {
		c := newBreakerFixture(t)
		for range 20 {
			c.failDomains(2)
			c.recordAnswer("good.test")
		}
		pending := c.failDomains(20)
		c.advance(5 * time.Second)
		c.wantFault(pending[19], undecided)
		pending = c.failDomains(60)
		c.advance(time.Second)
		c.wantFault(pending[59], machine)
	})
}

// TestBreakerPauses: pauses grow up to a minute, each ends with two probes, and the first answer
// ends the outage. If no host ever answers, hosts are charged after five minutes.
func TestBreakerPauses(t *testing.T) {
	c := newBreakerFixture(t)
	c.wantFault(c.failVisit("a.test", politeness.CertainlyMachine), politeness.MachineFault)
	for _, pause := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		c.advance(time.Duration(pause)*time.Second - time.Millisecond)
		if n := c.availableVisits(); n != 0 {
			t.Errorf("after %v: %d visits may begin, want none", c.now.Sub(noon), n)
		}
		_, d := c.limits.Reserve(c.now, "b.test", politeness.PermitRequest{})
		if d.Reason != decorum.ReasonNetwork || !errors.Is(d.Err(), decorum.NotDue) {
			t.Errorf("after %v: %v, want ReasonNetwork", c.now.Sub(noon), d.Err())
		}
		c.advance(time.Millisecond)
		if n := c.availableVisits(); n != 2 {
			t.Errorf("after %v: %d visits may begin, want 2", c.now.Sub(noon), n)
		}
		p, d := c.limits.Reserve(c.now, "b.test", politeness.PermitRequest{})
		if d.Action != decorum.Proceed {
			t.Fatal(d.Err())
		}
		if n := c.availableVisits(); n != 1 {
			t.Errorf("after %v: %d visits may begin beside a probe, want 1", c.now.Sub(noon), n)
		}
		c.wantFault(c.failVisit("b.test", politeness.CertainlyMachine), politeness.MachineFault)
		c.limits.ReleaseUnused(c.now, p)
	}
	c.limits.NetworkBreaker().RecordAnswer("a.test", noon) // it got its descriptor before they ran out
	c.wantOpen(true)
	c.advance(time.Minute)
	c.recordAnswer("a.test")
	c.wantOpen(false)
	if n := c.availableVisits(); n != 10 {
		t.Errorf("%d visits may begin, want 10", n)
	}

	c.wantFault(c.failVisit("a.test", politeness.ProbablyMachine), politeness.UndecidedFault)
	began := c.now
	for d := c.failVisit("never.test", politeness.ProbablyMachine); ; d = c.failVisit("never.test",
		politeness.ProbablyMachine) {
		c.advance(time.Minute)
		if v, _, _ := d.DecideFault(c.now); v == politeness.HostFault {
			break
		}
		if c.now.Sub(began) > 48*time.Hour {
			t.Fatal("the breaker never gives up")
		}
	}
	c.wantOpen(false)
	if s := c.limits.NetworkBreaker().State(); !s.ClosedWithoutAnswer {
		t.Error("the state does not say that the breaker gave up")
	}
}

// TestLoad: visits that were under way together halve the limit once. It grows by one for as many
// answers as it allows, and is removed when it has grown back.
func TestLoad(t *testing.T) {
	c := newBreakerFixture(t)
	load := c.limits.LocalOverloadLimiter()
	var permits []politeness.Permit
	for i := range 64 {
		p, d := c.limits.Reserve(c.now, fmt.Sprintf("%d.test", i), politeness.PermitRequest{})
		if d.Action != decorum.Proceed {
			t.Fatal(d.Err())
		}
		permits = append(permits, p)
	}
	if n := c.availableVisits(); n != 10 {
		t.Errorf("%d visits may begin, want 10", n)
	}
	c.advance(time.Second)
	for range 64 {
		load.RecordOverload(c.now, noon)
	}
	if load.Limit() != 32 || c.availableVisits() != 0 {
		t.Errorf("the limit is %d and %d visits may begin, want 32 and none", load.Limit(), c.availableVisits())
	}
	for _, p := range permits[:40] {
		c.limits.ReleaseUnused(c.now, p)
	}
	if n := c.availableVisits(); n != 8 {
		t.Errorf("%d visits may begin, want 8", n)
	}
	for range 33 {
		load.RecordAnswer()
	}
	if load.Limit() != 33 {
		t.Errorf("the limit is %d after 33 answers, want 33", load.Limit())
	}
	for range 33 * 64 {
		load.RecordAnswer()
	}
	if load.Limit() != 0 {
		t.Errorf("the limit is %d, want none", load.Limit())
	}
	for range 100 {
		c.advance(time.Second)
		load.RecordOverload(c.now, c.now)
	}
	if load.Limit() != 1 {
		t.Errorf("the limit is %d, want 1 at least", load.Limit())
	}
}

// TestRecordAnswerAllocatesNothing: the host has answered before.
func TestRecordAnswerAllocatesNothing(t *testing.T) {
	c := newBreakerFixture(t)
	for _, host := range []string{"www.site.test", "localhost", "127.0.0.1", "[2001:db8::1]"} {
		if n := testing.AllocsPerRun(100, func() { c.recordAnswer(host) }); n > 0 {
			t.Errorf("an answer of %s makes %v allocations", host, n)
		}
	}
}

// TestProbesOfUnansweredHosts: failed probes of hosts that never answered do not lengthen the
// pauses if other hosts have answered, because the next probe may reach one that has.
func TestProbesOfUnansweredHosts(t *testing.T) {
	c := newBreakerFixture(t)
	c.recordAnswer("good.test")
	c.failVisit("good.test", politeness.CertainlyMachine)
	probe := func(host string, pause time.Duration) {
		t.Helper()
		c.advance(pause - time.Millisecond)
		if n := c.availableVisits(); n != 0 {
			t.Errorf("after %v: %d visits may begin, want none", c.now.Sub(noon), n)
		}
		c.advance(time.Millisecond)
		if n := c.availableVisits(); n != 2 {
			t.Errorf("after %v: %d visits may begin, want 2", c.now.Sub(noon), n)
		}
		c.wantFault(c.failVisit(host, politeness.PossiblyMachine), politeness.MachineFault)
	}
	for i := range 10 {
		probe(fmt.Sprintf("%d.dead.test", i), time.Second)
	}
	probe("good.test", time.Second)
	probe("good.test", 2*time.Second)
	probe("1.dead.test", 4*time.Second)
	probe("good.test", 4*time.Second)
}
