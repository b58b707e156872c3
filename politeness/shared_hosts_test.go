package politeness_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
)

// requestWithDelay reserves a visit to host for a crawl that requires a delay of gap.
func requestWithDelay(l *politeness.Limiter, after time.Duration, host string,
	delay time.Duration) (politeness.Permit, error) {
	p, d := l.Reserve(noon.Add(after), host, politeness.PermitRequest{Delay: delay, HostSlots: 1})
	return p, d.Err()
}

// busyDecision returns the Decision in err, and whether a shared host or address caused it.
func busyDecision(err error) (decorum.Decision, bool) {
	d, _ := decorum.DecisionOf(err)
	switch d.Reason {
	case decorum.ReasonHostBusy, decorum.ReasonAddressBusy, decorum.ReasonRequestRate:
		return d, true
	}
	return d, false
}

func isBusy(err error) bool {
	_, ok := busyDecision(err)
	return ok
}

// mustVisit makes a visit of no duration, after which the host rests for gap.
func mustVisit(t *testing.T, l *politeness.Limiter, after time.Duration, host string, delay time.Duration) {
	t.Helper()
	p, err := requestWithDelay(l, after, host, delay)
	if err != nil {
		t.Fatalf("after %v: %v", after, err)
	}
	end := noon.Add(after)
	l.ReleaseAfterTransfer(p, end)
	l.SetNextVisitAndCountBytes(host, politeness.NextVisit{Due: end.Add(delay), Delay: delay, HostSlots: 1}, 0)
}

// mustBeBusyUntil fails the test unless a visit is postponed until the given time.
func mustBeBusyUntil(t *testing.T, l *politeness.Limiter, after time.Duration, host string,
	delay, until time.Duration) {
	t.Helper()
	_, err := requestWithDelay(l, after, host, delay)
	if busy, ok := busyDecision(err); !ok || !busy.Until.Equal(noon.Add(until)) {
		t.Errorf("after %v: %v, want it postponed until %v after noon", after, err, until)
	}
}

// isWoken reports whether ReadyHostsChanged has received.
func isWoken(l *politeness.Limiter) bool {
	select {
	case <-l.ReadyHostsChanged():
		return true
	default:
		return false
	}
}

func twoLimiters() (a, b *politeness.Limiter) {
	hosts := politeness.NewSharedHosts()
	return hosts.NewLimiter(politeness.LimiterConfig{}), hosts.NewLimiter(politeness.LimiterConfig{})
}

// TestAVisitOfAnotherCounts: after a visit of another crawl, each crawl waits for the delay that it
// requires itself, and for the rest that the visit set.
func TestAVisitOfAnotherCounts(t *testing.T) {
	a, b := twoLimiters()
	mustVisit(t, a, 0, "h", sec)
	mustBeBusyUntil(t, b, sec/2, "h", 5*sec, 5*sec)
	mustVisit(t, b, 5*sec, "h", 5*sec)
	a, b = twoLimiters()
	mustVisit(t, a, 0, "h", time.Hour)
	mustBeBusyUntil(t, b, sec, "h", sec, time.Hour)
	mustVisit(t, b, time.Hour, "h", sec)
}

// TestCrawlsTakeTurns: a crawl that was refused since the last visit goes first and is woken,
// however often another crawl asks.
func TestCrawlsTakeTurns(t *testing.T) {
	a, b := twoLimiters()
	mustVisit(t, a, 0, "h", sec)
	mustBeBusyUntil(t, b, 0, "h", sec, sec)
	for range 3 {
		if _, err := requestWithDelay(a, sec, "h", sec); err == nil {
			t.Fatal("the crawl that visited the host last goes before one that waits")
		}
	}
	mustVisit(t, b, sec, "h", sec)
	if from, ok := a.GrantedTurnStart("h"); !ok || !from.Equal(noon.Add(2*sec)) || !isWoken(a) {
		t.Errorf("granted %t, from %v", ok, from)
	}
	wantReadyHosts(t, a, map[string]time.Duration{"h": 2 * sec})
	wantReadyHosts(t, b, nil)
	mustVisit(t, a, 2*sec, "h", sec)
}

// TestATurnThatIsNotTakenPassesOn: another crawl gets the turn within seconds.
func TestATurnThatIsNotTakenPassesOn(t *testing.T) {
	a, b := twoLimiters()
	mustVisit(t, a, 0, "h", sec)
	mustBeBusyUntil(t, b, 0, "h", sec, sec)
	at := sec
	for at < time.Minute {
		_, err := requestWithDelay(a, at, "h", sec)
		busy, ok := busyDecision(err)
		if !ok {
			break
		}
		at = busy.Until.Sub(noon)
	}
	if at < 11*sec || at > 16*sec {
		t.Errorf("an unused turn passed on after %v", at)
	}
}

// TestTheSlowerCrawlSetsTheDelay: the slower crawl sets the pace while it visits the host, and no
// longer.
func TestTheSlowerCrawlSetsTheDelay(t *testing.T) {
	a, b := twoLimiters()
	mustVisit(t, b, 0, "h", 5*sec)
	mustBeBusyUntil(t, a, sec, "h", sec, 5*sec)
	mustVisit(t, a, 5*sec, "h", sec)
	mustBeBusyUntil(t, a, 6*sec, "h", sec, 10*sec)
	mustVisit(t, a, 16*sec, "h", sec) // b could have come at 10 s
	mustVisit(t, a, 17*sec, "h", sec)
}

// TestSlotsAreTheLeast: a host has the fewest slots that a crawl visiting it requires.
func TestSlotsAreTheLeast(t *testing.T) {
	a, b := twoLimiters()
	three := politeness.PermitRequest{HostSlots: 3}
	for range 2 {
		if _, d := a.Reserve(noon, "h", three); d.Action != decorum.Proceed {
			t.Fatal(d.Err())
		}
	}
	if _, d := b.Reserve(noon, "h", politeness.PermitRequest{HostSlots: 1}); d.Action == decorum.Proceed {
		t.Error("a crawl that allows one visit at a time joined two")
	}
	if _, d := a.Reserve(noon, "h", three); d.Action == decorum.Proceed {
		t.Error("a third visit began, although another crawl allows one at a time")
	}
	a.SetNextVisitAndCountBytes("h", politeness.NextVisit{Due: noon}, 0)
	wantReadyHosts(t, b, nil)
	a.SetNextVisitAndCountBytes("h", politeness.NextVisit{Due: noon}, 0)
	wantReadyHosts(t, b, map[string]time.Duration{"h": 0})
}

// TestLeaveSharedHosts: a crawl that has left slows no other crawl, and holds no turn.
func TestLeaveSharedHosts(t *testing.T) {
	a, b := twoLimiters()
	mustVisit(t, b, 0, "h", time.Minute)
	mustBeBusyUntil(t, a, 0, "h", sec, time.Minute) // the rest after a visit remains
	mustVisit(t, a, time.Minute, "h", sec)
	mustBeBusyUntil(t, b, time.Minute, "h", time.Minute, 2*time.Minute)
	if _, err := requestWithDelay(a, 61*sec, "h", sec); err == nil {
		t.Fatal("the host is not visited at the pace of the slower crawl")
	}
	b.LeaveSharedHosts(noon.Add(61 * sec))
	if !isWoken(a) {
		t.Error("the waiting crawl was not woken")
	}
	mustVisit(t, a, 61*sec, "h", sec)
	if _, err := requestWithDelay(b, time.Hour, "lost", sec); err != nil {
		t.Fatal(err)
	}
	mustBeRefused(t, a, time.Hour, "lost")
	b.LeaveSharedHosts(noon.Add(time.Hour)) // with a visit under way, whose end is not reported
	mustVisit(t, a, time.Hour+sec, "lost", sec)
}

// mustBeRefused fails the test unless a visit is postponed.
func mustBeRefused(t *testing.T, l *politeness.Limiter, after time.Duration, host string) {
	t.Helper()
	if _, err := requestWithDelay(l, after, host, sec); !isBusy(err) {
		t.Errorf("after %v: %v, want it postponed", after, err)
	}
}

// TestPostponeHost: PostponeHost takes a visit of an earlier process into account.
func TestPostponeHost(t *testing.T) {
	a, b := twoLimiters()
	if a.KnowsHost("h") {
		t.Error("KnowsHost is true for a new host")
	}
	a.PostponeHost(noon, "h", time.Time{}, noon.Add(time.Hour))
	if !b.KnowsHost("h") {
		t.Error("KnowsHost is false for a host that another crawl has postponed")
	}
	mustBeBusyUntil(t, b, 0, "h", sec, time.Hour)
	a.PostponeHost(noon, "h", time.Time{}, noon.Add(time.Minute)) // an earlier due time changes nothing
	mustVisit(t, b, time.Hour, "h", sec)
	a.PostponeHost(noon, "i", noon.Add(-5*sec), noon.Add(sec)) // each crawl requires its own delay since then
	mustBeBusyUntil(t, b, sec, "i", 20*sec, 15*sec)
	mustVisit(t, b, 15*sec, "i", 20*sec)
}

// TestTheStricterLimitsOfAnAddress: the strictest limits of all crawls apply to a shared address.
func TestTheStricterLimitsOfAnAddress(t *testing.T) {
	hosts := politeness.NewSharedHosts()
	strict := hosts.NewLimiter(politeness.LimiterConfig{IPConcurrency: 1, IPDelay: 2 * sec})
	free := hosts.NewLimiter(politeness.LimiterConfig{})
	for i := range 5 {
		mustBind(t, free, 0, fmt.Sprint(i), sharedAddr) // no other crawl visits the address
	}
	mustBeBusy(t, strict, 0, "a", sharedAddr)
	mustBeBusy(t, free, 0, "6", sharedAddr)
	hosts = politeness.NewSharedHosts()
	strict = hosts.NewLimiter(politeness.LimiterConfig{IPConcurrency: 1, IPDelay: 2 * sec})
	free = hosts.NewLimiter(politeness.LimiterConfig{IPConcurrency: 3})
	strict.ReleaseAfterTransfer(mustBind(t, strict, 0, "a", sharedAddr), noon)
	if until := mustBeBusy(t, free, sec, "b", sharedAddr); until != 2*sec {
		t.Errorf("postponed until %v after noon, want 2s", until)
	}
	first := mustBind(t, free, 2*sec, "b", sharedAddr)
	mustBeBusy(t, free, 2*sec, "c", sharedAddr)
	free.ReleaseAfterTransfer(first, noon.Add(3*sec))
	wantReadyHosts(t, free, map[string]time.Duration{"c": 5 * sec})
}

// TestSharedHostsAreForgotten: a host is dropped when it delays no crawl any more, and not before.
func TestSharedHostsAreForgotten(t *testing.T) {
	a, b := twoLimiters()
	if _, err := requestWithDelay(b, 0, "slow", 20*sec); err != nil {
		t.Fatal(err)
	}
	const visits = 100_000
	for i := range visits {
		mustVisit(t, a, time.Duration(i)*time.Millisecond, fmt.Sprint(i), sec)
	}
	if n := a.HostCount(); n > 50_000 {
		t.Errorf("remembers %d hosts, want the 20,000 that matter to a crawl with a delay of 20 s", n)
	}
	mustBeBusyUntil(t, b, visits*time.Millisecond, fmt.Sprint(visits-19_000), 20*sec,
		(visits-19_000)*time.Millisecond+20*sec)
}
