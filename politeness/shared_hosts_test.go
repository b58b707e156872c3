package politeness_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/politeness"
)

// wish asks for a visit to host of a crawl that wants a rest of gap.
func wish(l *politeness.Limits, after time.Duration, host string, gap time.Duration) (politeness.Permit, error) {
	return l.Request(noon.Add(after), host, politeness.Wish{Gap: gap, Slots: 1})
}

// mayVisit makes a visit without a length that earns a rest of gap.
func mayVisit(t *testing.T, l *politeness.Limits, after time.Duration, host string, gap time.Duration) {
	t.Helper()
	p, err := wish(l, after, host, gap)
	if err != nil {
		t.Fatalf("after %v: %v", after, err)
	}
	end := noon.Add(after)
	l.Leave(p, end)
	l.Ended(host, politeness.Rest{Due: end.Add(gap), Gap: gap, Slots: 1}, 0)
}

// mustWait fails the test unless a visit is refused until then.
func mustWait(t *testing.T, l *politeness.Limits, after time.Duration, host string, gap, until time.Duration) {
	t.Helper()
	_, err := wish(l, after, host, gap)
	var busy *politeness.Busy
	if !errors.As(err, &busy) || !busy.Until.Equal(noon.Add(until)) {
		t.Errorf("after %v: %v, want Busy until %v after noon", after, err, until)
	}
}

// rings reports whether l has been woken.
func rings(l *politeness.Limits) bool {
	select {
	case <-l.Wake():
		return true
	default:
		return false
	}
}

func pair() (a, b *politeness.Limits) {
	hosts := politeness.NewHosts()
	return hosts.Limits(politeness.LimitsConfig{}), hosts.Limits(politeness.LimitsConfig{})
}

// TestAVisitOfAnotherCounts: each crawl waits, from its end, for what it wants
// itself, and for what the visit earned.
func TestAVisitOfAnotherCounts(t *testing.T) {
	a, b := pair()
	mayVisit(t, a, 0, "h", sec)
	mustWait(t, b, sec/2, "h", 5*sec, 5*sec)
	mayVisit(t, b, 5*sec, "h", 5*sec)
	a, b = pair()
	mayVisit(t, a, 0, "h", time.Hour)
	mustWait(t, b, sec, "h", sec, time.Hour)
	mayVisit(t, b, time.Hour, "h", sec)
}

// TestCrawlsTakeTurns: who was turned away since the last visit goes first, and
// is called, and not who asks more often.
func TestCrawlsTakeTurns(t *testing.T) {
	a, b := pair()
	mayVisit(t, a, 0, "h", sec)
	mustWait(t, b, 0, "h", sec, sec)
	for range 3 {
		if _, err := wish(a, sec, "h", sec); err == nil {
			t.Fatal("the crawl that had the host last goes before one that waits")
		}
	}
	mayVisit(t, b, sec, "h", sec)
	if from, ok := a.Called("h"); !ok || !from.Equal(noon.Add(2*sec)) || !rings(a) {
		t.Errorf("called %t, from %v", ok, from)
	}
	calls(t, a, map[string]time.Duration{"h": 2 * sec})
	calls(t, b, nil)
	mayVisit(t, a, 2*sec, "h", sec)
}

// TestATurnThatIsNotTakenPassesOn within seconds.
func TestATurnThatIsNotTakenPassesOn(t *testing.T) {
	a, b := pair()
	mayVisit(t, a, 0, "h", sec)
	mustWait(t, b, 0, "h", sec, sec)
	at := sec
	for at < time.Minute {
		_, err := wish(a, at, "h", sec)
		var busy *politeness.Busy
		if !errors.As(err, &busy) {
			break
		}
		at = busy.Until.Sub(noon)
	}
	if at < 11*sec || at > 16*sec {
		t.Errorf("the turn of a crawl that does not come passed on after %v", at)
	}
}

// TestTheSlowerOfTwo sets the pace while it comes, and no longer.
func TestTheSlowerOfTwo(t *testing.T) {
	a, b := pair()
	mayVisit(t, b, 0, "h", 5*sec)
	mustWait(t, a, sec, "h", sec, 5*sec)
	mayVisit(t, a, 5*sec, "h", sec)
	mustWait(t, a, 6*sec, "h", sec, 10*sec)
	mayVisit(t, a, 16*sec, "h", sec) // b could have come at 10 s
	mayVisit(t, a, 17*sec, "h", sec)
}

// TestSlotsAreTheLeast of what the crawls want that visit at the same time.
func TestSlotsAreTheLeast(t *testing.T) {
	a, b := pair()
	three := politeness.Wish{Slots: 3}
	for range 2 {
		if _, err := a.Request(noon, "h", three); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Request(noon, "h", politeness.Wish{Slots: 1}); err == nil {
		t.Error("a visit beside two, of a crawl that wants one at a time")
	}
	if _, err := a.Request(noon, "h", three); err == nil {
		t.Error("a third visit, though another crawl wants one at a time")
	}
	a.Ended("h", politeness.Rest{Due: noon}, 0)
	calls(t, b, nil)
	a.Ended("h", politeness.Rest{Due: noon}, 0)
	calls(t, b, map[string]time.Duration{"h": 0})
}

// TestWithdraw: a crawl that is over slows nobody, and nobody waits for it.
func TestWithdraw(t *testing.T) {
	a, b := pair()
	mayVisit(t, b, 0, "h", time.Minute)
	mustWait(t, a, 0, "h", sec, time.Minute) // what a visit has earned holds on
	mayVisit(t, a, time.Minute, "h", sec)
	mustWait(t, b, time.Minute, "h", time.Minute, 2*time.Minute)
	if _, err := wish(a, 61*sec, "h", sec); err == nil {
		t.Fatal("not at the pace of the slower one")
	}
	b.Withdraw(noon.Add(61 * sec))
	if !rings(a) {
		t.Error("nobody called who waits")
	}
	mayVisit(t, a, 61*sec, "h", sec)
	if _, err := wish(b, time.Hour, "lost", sec); err != nil {
		t.Fatal(err)
	}
	mustWaitFor(t, a, time.Hour, "lost")
	b.Withdraw(noon.Add(time.Hour)) // with a visit out, of which nobody knows the end
	mayVisit(t, a, time.Hour+sec, "lost", sec)
}

// mustWaitFor fails the test unless a visit is refused.
func mustWaitFor(t *testing.T, l *politeness.Limits, after time.Duration, host string) {
	t.Helper()
	if _, err := wish(l, after, host, sec); !errors.As(err, new(*politeness.Busy)) {
		t.Errorf("after %v: %v, want Busy", after, err)
	}
}

// TestOwe: a visit of an earlier process counts for a host that is new to this one.
func TestOwe(t *testing.T) {
	a, b := pair()
	if a.Knows("h") {
		t.Error("knows a host that nobody has met")
	}
	a.Owe(noon, "h", time.Time{}, noon.Add(time.Hour))
	if !b.Knows("h") {
		t.Error("what one crawl has been told, the other does not know")
	}
	mustWait(t, b, 0, "h", sec, time.Hour)
	a.Owe(noon, "h", time.Time{}, noon.Add(time.Minute)) // it ends no longer one
	mayVisit(t, b, time.Hour, "h", sec)
	a.Owe(noon, "i", noon.Add(-5*sec), noon.Add(sec)) // each crawl wants its own rest since then
	mustWait(t, b, sec, "i", 20*sec, 15*sec)
	mayVisit(t, b, 15*sec, "i", 20*sec)
}

// TestTheStricterLimitsOfAnAddress hold for the addresses that crawls share.
func TestTheStricterLimitsOfAnAddress(t *testing.T) {
	hosts := politeness.NewHosts()
	strict := hosts.Limits(politeness.LimitsConfig{IPConcurrency: 1, IPDelay: 2 * sec})
	free := hosts.Limits(politeness.LimitsConfig{})
	for i := range 5 {
		enters(t, free, 0, fmt.Sprint(i), shared) // nobody else is there
	}
	waits(t, strict, 0, "a", shared)
	waits(t, free, 0, "6", shared)
	hosts = politeness.NewHosts()
	strict = hosts.Limits(politeness.LimitsConfig{IPConcurrency: 1, IPDelay: 2 * sec})
	free = hosts.Limits(politeness.LimitsConfig{IPConcurrency: 3})
	strict.Leave(enters(t, strict, 0, "a", shared), noon)
	if until := waits(t, free, sec, "b", shared); until != 2*sec {
		t.Errorf("told to come after %v, want 2s", until)
	}
	first := enters(t, free, 2*sec, "b", shared)
	waits(t, free, 2*sec, "c", shared)
	free.Leave(first, noon.Add(3*sec))
	calls(t, free, map[string]time.Duration{"c": 5 * sec})
}

// TestSharedHostsAreForgotten when they are due for everyone, and not before.
func TestSharedHostsAreForgotten(t *testing.T) {
	a, b := pair()
	if _, err := wish(b, 0, "slow", 20*sec); err != nil {
		t.Fatal(err)
	}
	const visits = 100_000
	for i := range visits {
		mayVisit(t, a, time.Duration(i)*time.Millisecond, fmt.Sprint(i), sec)
	}
	if n := a.Hosts(); n > 50_000 {
		t.Errorf("remembers %d hosts, of which 20,000 matter to a crawl that wants rests of 20 s", n)
	}
	mustWait(t, b, visits*time.Millisecond, fmt.Sprint(visits-19_000), 20*sec, (visits-19_000)*time.Millisecond+20*sec)
}
