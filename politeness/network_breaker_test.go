package politeness_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
)

// A breakerClock is a Breaker, the Limits that it is of, and the time.
type breakerClock struct {
	t      *testing.T
	limits *politeness.Limits
	now    time.Time
}

func newBreakerClock(t *testing.T) *breakerClock {
	return &breakerClock{t: t, limits: politeness.NewLimits(politeness.LimitsConfig{}), now: noon}
}

func (c *breakerClock) pass(d time.Duration) { c.now = c.now.Add(d) }

// fail has a visit to a host fail that began at the moment.
func (c *breakerClock) fail(host string, e politeness.Evidence) *politeness.Doubt {
	failure := politeness.Failure{Host: host, Start: c.now, Evidence: e, Why: "the test says so"}
	return c.limits.Breaker().Fail(c.now, failure)
}

// failAll has hosts of so many domains fail, and returns their doubts.
func (c *breakerClock) failAll(domains int) (doubts []*politeness.Doubt) {
	for i := range domains {
		doubts = append(doubts, c.fail(fmt.Sprintf("www.site%d.test", i), politeness.Possible))
	}
	return doubts
}

func (c *breakerClock) answer(host string) { c.limits.Breaker().Answered(host, c.now) }

// want fails the test unless the verdict on a doubt is so.
func (c *breakerClock) want(d *politeness.Doubt, want politeness.Verdict) {
	c.t.Helper()
	if got, _, _ := d.Decide(c.now); got != want {
		c.t.Errorf("after %v: verdict %d, want %d", c.now.Sub(noon), got, want)
	}
}

// wantOpen fails the test unless the breaker is open, or closed.
func (c *breakerClock) wantOpen(want bool) {
	c.t.Helper()
	if s := c.limits.Breaker().State(); s.Open != want {
		c.t.Errorf("after %v: open is %v, want %v", c.now.Sub(noon), s.Open, want)
	}
}

// visits returns how many of ten visits Ready lets begin.
func (c *breakerClock) visits() int {
	n, _ := c.limits.AvailableVisits(c.now, 10)
	return n
}

func TestBreakerDecides(t *testing.T) {
	const host, machine, undecided = politeness.HostFault, politeness.MachineFault, politeness.Undecided
	t.Run("few hosts are to blame themselves", func(t *testing.T) {
		c := newBreakerClock(t)
		for _, d := range c.failAll(7) {
			c.want(d, host)
		}
		c.wantOpen(false)
	})
	t.Run("many hosts are not", func(t *testing.T) {
		c := newBreakerClock(t)
		c.failAll(7) // by which it knows that there are many
		doubts := c.failAll(8)
		c.pass(2 * time.Second)
		c.want(doubts[7], undecided)
		c.pass(time.Second)
		c.want(doubts[7], machine)
		c.wantOpen(true)
		c.want(c.fail("another.test", politeness.Possible), machine)
	})
	t.Run("an answer blames those that failed before", func(t *testing.T) {
		c := newBreakerClock(t)
		c.failAll(7)
		d := c.fail("www.site8.test", politeness.Possible)
		c.want(d, undecided)
		c.answer("good.test")
		c.want(d, host)
	})
	t.Run("names of one domain are one host", func(t *testing.T) {
		c := newBreakerClock(t)
		c.failAll(8)
		c.answer("good.test")
		for i := range 1000 {
			c.fail(fmt.Sprintf("%d.hostile.test", i), politeness.Possible)
		}
		d := c.fail("last.hostile.test", politeness.Possible)
		c.pass(5 * time.Second)
		c.want(d, undecided)
		c.pass(5 * time.Second)
		c.want(d, host)
		c.wantOpen(false)
	})
	t.Run("one host without a route is enough", func(t *testing.T) {
		c := newBreakerClock(t)
		d := c.fail("a.test", politeness.Probable)
		c.want(d, undecided)
		c.pass(3 * time.Second)
		c.want(d, machine)
		c.wantOpen(true)
	})
	t.Run("where half of the hosts are dead, many fail in a row", func(t *testing.T) {
		c := newBreakerClock(t)
		for range 20 {
			c.failAll(2)
			c.answer("good.test")
		}
		doubts := c.failAll(20)
		c.pass(5 * time.Second)
		c.want(doubts[19], undecided)
		doubts = c.failAll(60)
		c.pass(time.Second)
		c.want(doubts[59], machine)
	})
}

// TestBreakerPauses: pauses grow to a minute, two probes end each, and the first answer
// ends them all. Where no host ever answers, the hosts are to blame after five minutes.
func TestBreakerPauses(t *testing.T) {
	c := newBreakerClock(t)
	c.want(c.fail("a.test", politeness.Certain), politeness.MachineFault)
	for _, pause := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		c.pass(time.Duration(pause)*time.Second - time.Millisecond)
		if n := c.visits(); n != 0 {
			t.Errorf("after %v: %d visits may begin, want none", c.now.Sub(noon), n)
		}
		var paused *politeness.Paused
		_, err := c.limits.Request(c.now, "b.test", politeness.Wish{})
		if !errors.As(err, &paused) || !errors.Is(err, decorum.NotDue) {
			t.Errorf("after %v: %v, want that the crawl is paused", c.now.Sub(noon), err)
		}
		c.pass(time.Millisecond)
		if n := c.visits(); n != 2 {
			t.Errorf("after %v: %d visits may begin, want 2", c.now.Sub(noon), n)
		}
		p, err := c.limits.Request(c.now, "b.test", politeness.Wish{})
		if err != nil {
			t.Fatal(err)
		}
		if n := c.visits(); n != 1 {
			t.Errorf("after %v: %d visits may begin beside a probe, want 1", c.now.Sub(noon), n)
		}
		c.want(c.fail("b.test", politeness.Certain), politeness.MachineFault)
		c.limits.Release(c.now, p)
	}
	c.limits.Breaker().Answered("a.test", noon) // it had its descriptor before there were none left
	c.wantOpen(true)
	c.pass(time.Minute)
	c.answer("a.test")
	c.wantOpen(false)
	if n := c.visits(); n != 10 {
		t.Errorf("%d visits may begin, want 10", n)
	}

	c.want(c.fail("a.test", politeness.Probable), politeness.Undecided)
	began := c.now
	for d := c.fail("never.test", politeness.Probable); ; d = c.fail("never.test", politeness.Probable) {
		c.pass(time.Minute)
		if v, _, _ := d.Decide(c.now); v == politeness.HostFault {
			break
		}
		if c.now.Sub(began) > 48*time.Hour {
			t.Fatal("the breaker never gives up")
		}
	}
	c.wantOpen(false)
	if s := c.limits.Breaker().State(); !s.GaveUp {
		t.Error("the state does not say that the breaker gave up")
	}
}

// TestLoad: the limit is halved once for the visits that were under way together, grows
// by one for as many answers as it allows, and is dropped in the end.
func TestLoad(t *testing.T) {
	c := newBreakerClock(t)
	load := c.limits.Load()
	var permits []politeness.Permit
	for i := range 64 {
		p, err := c.limits.Request(c.now, fmt.Sprintf("%d.test", i), politeness.Wish{})
		if err != nil {
			t.Fatal(err)
		}
		permits = append(permits, p)
	}
	if n := c.visits(); n != 10 {
		t.Errorf("%d visits may begin, want 10", n)
	}
	c.pass(time.Second)
	for range 64 {
		load.Overloaded(c.now, noon)
	}
	if load.Limit() != 32 || c.visits() != 0 {
		t.Errorf("the limit is %d and %d visits may begin, want 32 and none", load.Limit(), c.visits())
	}
	for _, p := range permits[:40] {
		c.limits.Release(c.now, p)
	}
	if n := c.visits(); n != 8 {
		t.Errorf("%d visits may begin, want 8", n)
	}
	for range 33 {
		load.Answered()
	}
	if load.Limit() != 33 {
		t.Errorf("the limit is %d after 33 answers, want 33", load.Limit())
	}
	for range 33 * 64 {
		load.Answered()
	}
	if load.Limit() != 0 {
		t.Errorf("the limit is %d, want none", load.Limit())
	}
	for range 100 {
		c.pass(time.Second)
		load.Overloaded(c.now, c.now)
	}
	if load.Limit() != 1 {
		t.Errorf("the limit is %d, want 1 at least", load.Limit())
	}
}

// TestAnsweredAllocates: an answer of a host that has answered before allocates nothing.
func TestAnsweredAllocates(t *testing.T) {
	c := newBreakerClock(t)
	for _, host := range []string{"www.site.test", "localhost", "127.0.0.1", "[2001:db8::1]"} {
		if n := testing.AllocsPerRun(100, func() { c.answer(host) }); n > 0 {
			t.Errorf("an answer of %s makes %v allocations", host, n)
		}
	}
}

// TestUnprovenProbes: probes of hosts that never answered do not make pauses longer where
// other hosts have answered: the next probe may be of one of these.
func TestUnprovenProbes(t *testing.T) {
	c := newBreakerClock(t)
	c.answer("good.test")
	c.fail("good.test", politeness.Certain)
	probe := func(host string, pause time.Duration) {
		t.Helper()
		c.pass(pause - time.Millisecond)
		if n := c.visits(); n != 0 {
			t.Errorf("after %v: %d visits may begin, want none", c.now.Sub(noon), n)
		}
		c.pass(time.Millisecond)
		if n := c.visits(); n != 2 {
			t.Errorf("after %v: %d visits may begin, want 2", c.now.Sub(noon), n)
		}
		c.want(c.fail(host, politeness.Possible), politeness.MachineFault)
	}
	for i := range 10 {
		probe(fmt.Sprintf("%d.dead.test", i), time.Second)
	}
	probe("good.test", time.Second)
	probe("good.test", 2*time.Second)
	probe("1.dead.test", 4*time.Second)
	probe("good.test", 4*time.Second)
}
