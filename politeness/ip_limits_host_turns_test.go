package politeness_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
)

var sharedAddr = netip.MustParseAddr("93.184.216.34")

// requestAndBind reserves a permit for host and claims addr with it, as a visit does.
func requestAndBind(l *politeness.Limiter, after time.Duration, host string,
	addr netip.Addr) (politeness.Permit, error) {
	p, d := l.Reserve(noon.Add(after), host, politeness.PermitRequest{HostSlots: 9})
	err := d.Err()
	if err != nil {
		return p, err
	}
	if err := p.ClaimServerAddr(noon.Add(after), addr); err != nil {
		l.ReleaseUnused(noon.Add(after), p)
		return politeness.Permit{}, err
	}
	return p, nil
}

// mustBind fails the test unless the visit may begin.
func mustBind(t *testing.T, l *politeness.Limiter, after time.Duration, host string,
	addr netip.Addr) politeness.Permit {
	t.Helper()
	p, err := requestAndBind(l, after, host, addr)
	if err != nil {
		t.Fatalf("%s after %v: %v", host, after, err)
	}
	return p
}

// mustBeBusy fails the test unless the visit is postponed, and returns until when.
func mustBeBusy(t *testing.T, l *politeness.Limiter, after time.Duration, host string, addr netip.Addr) time.Duration {
	t.Helper()
	_, err := requestAndBind(l, after, host, addr)
	busy, ok := busyDecision(err)
	if !ok || !errors.Is(err, decorum.NotDue) {
		t.Fatalf("%s after %v: %v, want the visit to be postponed", host, after, err)
	}
	return busy.Until.Sub(noon)
}

// wantReadyHosts fails the test unless these hosts have been granted turns, each from the given
// time after noon.
func wantReadyHosts(t *testing.T, l *politeness.Limiter, want map[string]time.Duration) {
	t.Helper()
	got := l.TakeGrantedTurns()
	if len(got) != len(want) {
		t.Errorf("granted turns: %v, want %v", got, want)
	}
	for host, from := range want {
		if !got[host].Equal(noon.Add(from)) {
			t.Errorf("%s: turn from %v on, want %v after noon", host, got[host], from)
		}
	}
}

func TestAddressIsShared(t *testing.T) {
	l := politeness.NewLimiter(politeness.LimiterConfig{IPConcurrency: 2, IPDelay: 3 * sec})
	other := netip.MustParseAddr("2606:2800:220:1::1")
	a := mustBind(t, l, 0, "a", sharedAddr)
	b := mustBind(t, l, 0, "b", netip.MustParseAddr("::ffff:93.184.216.34")) // the same
	mustBeBusy(t, l, 0, "c", sharedAddr)
	mustBeBusy(t, l, 0, "d", sharedAddr)
	mustBeBusy(t, l, 0, "e", sharedAddr)
	mustBind(t, l, 0, "f", other)

	l.ReleaseAfterTransfer(a, noon.Add(sec))
	wantReadyHosts(t, l, map[string]time.Duration{"c": 4 * sec})
	if until := mustBeBusy(t, l, 2*sec, "c", sharedAddr); until != 4*sec {
		t.Errorf("c is postponed until %v after noon", until)
	}
	l.ReleaseAfterTransfer(b, noon.Add(2*sec)) // the rest begins again, for c too
	wantReadyHosts(t, l, map[string]time.Duration{"c": 5 * sec, "d": 5 * sec})
	if from, ok := l.GrantedTurnStart("c"); !ok || !from.Equal(noon.Add(5*sec)) {
		t.Errorf("c: granted %t, from %v", ok, from)
	}
	mustBeBusy(t, l, 4*sec, "c", sharedAddr)
	mustBeBusy(t, l, 5*sec, "x", sharedAddr) // x joins the end of the waitlist
	mustBind(t, l, 5*sec, "c", sharedAddr)
	mustBind(t, l, 5*sec, "d", sharedAddr)
	wantReadyHosts(t, l, nil)
}

// TestAddressIsAskedForOnce: a host whose address is known is refused before its address is
// dialled, and a second request changes neither its place in the waitlist nor the slots.
func TestAddressIsAskedForOnce(t *testing.T) {
	l := politeness.NewLimiter(politeness.LimiterConfig{IPConcurrency: 1})
	a := mustBind(t, l, 0, "a", sharedAddr)
	if err := a.ClaimServerAddr(noon, sharedAddr); err != nil {
		t.Errorf("the same address again: %v", err)
	}
	mustBeBusy(t, l, 0, "b", sharedAddr)
	mustBeBusy(t, l, 0, "c", sharedAddr)
	for range 3 {
		if _, d := l.Reserve(noon, "b", politeness.PermitRequest{NotBefore: noon}); !errors.Is(d.Err(),
			decorum.NotDue) {
			t.Errorf("known to be busy: %v", d.Err())
		}
	}
	l.ReleaseAfterTransfer(a, noon.Add(sec))
	l.ReleaseAfterTransfer(a, noon.Add(sec))  // the first return frees the slot
	l.ReleaseUnused(noon.Add(sec), a)         // the second return has no effect
	mustBeBusy(t, l, sec, "c", sharedAddr)    // the turn is b's
	b := mustBind(t, l, sec, "b", sharedAddr) // b takes its turn
	l.ReleaseUnused(noon.Add(sec), b)         // nothing was sent
	mustBind(t, l, sec, "c", sharedAddr)
	if err := b.ClaimServerAddr(noon, sharedAddr); !errors.Is(err, decorum.Unticketed) {
		t.Errorf("a returned permit: %v", err)
	}
	if err := (politeness.Permit{}).ClaimServerAddr(noon, sharedAddr); !errors.Is(err, decorum.Unticketed) {
		t.Errorf("no permit: %v", err)
	}
}

// TestAddressMoves: the new connection goes to another address than the last one. The slot that
// Reserve took is freed without a rest.
func TestAddressMoves(t *testing.T) {
	l := politeness.NewLimiter(politeness.LimiterConfig{IPConcurrency: 1, IPDelay: 3 * sec})
	l.ReleaseAfterTransfer(mustBind(t, l, 0, "a", sharedAddr), noon)
	p, d := l.Reserve(noon.Add(3*sec), "a", politeness.PermitRequest{NotBefore: noon, HostSlots: 9})
	if d.Action != decorum.Proceed {
		t.Fatal(d.Err())
	}
	mustBeBusy(t, l, 3*sec, "b", sharedAddr)
	if err := p.ClaimServerAddr(noon.Add(3*sec), netip.MustParseAddr("93.184.216.35")); err != nil {
		t.Fatal(err)
	}
	wantReadyHosts(t, l, map[string]time.Duration{"b": 3 * sec})
	mustBind(t, l, 3*sec, "b", sharedAddr)
}

// TestAHostThatMovesLeavesTheQueue: a host whose address changes leaves the waitlist of the old
// address.
func TestAHostThatMovesLeavesTheQueue(t *testing.T) {
	l := politeness.NewLimiter(politeness.LimiterConfig{IPConcurrency: 1})
	a := mustBind(t, l, 0, "a", sharedAddr)
	first, d := l.Reserve(noon, "b", politeness.PermitRequest{NotBefore: noon, HostSlots: 2})
	if d.Action != decorum.Proceed {
		t.Fatal(d.Err())
	}
	mustBeBusy(t, l, 0, "b", sharedAddr)
	if err := first.ClaimServerAddr(noon, netip.MustParseAddr("93.184.216.35")); err != nil {
		t.Fatal(err)
	}
	mustBeBusy(t, l, 0, "c", sharedAddr)
	l.ReleaseAfterTransfer(a, noon)
	wantReadyHosts(t, l, map[string]time.Duration{"c": 0})
}

func TestLoopbackIsTheOperatorsOwn(t *testing.T) {
	local := netip.MustParseAddr("127.0.0.1")
	l := politeness.NewLimiter(politeness.LimiterConfig{IPConcurrency: 1})
	mustBind(t, l, 0, "a", local)
	mustBind(t, l, 0, "b", local)
	l = politeness.NewLimiter(politeness.LimiterConfig{IPConcurrency: 1, LimitLoopback: true})
	mustBind(t, l, 0, "a", local)
	mustBeBusy(t, l, 0, "b", local)
	l = politeness.NewLimiter(politeness.LimiterConfig{})
	mustBind(t, l, 0, "a", sharedAddr)
	mustBind(t, l, 0, "b", sharedAddr)
}

func TestAddressRestsAfterARestart(t *testing.T) {
	l := politeness.NewLimiter(politeness.LimiterConfig{IPConcurrency: 2, IPDelay: 3 * sec, RestartedAt: noon})
	if until := mustBeBusy(t, l, sec, "a", sharedAddr); until != 3*sec {
		t.Errorf("postponed until %v after noon, want 3s", until)
	}
	mustBind(t, l, 3*sec, "a", sharedAddr)
}

// TestGrantsExpire: a host that does not use its turn delays no other host for longer than the
// time-out.
func TestGrantsExpire(t *testing.T) {
	l := politeness.NewLimiter(politeness.LimiterConfig{IPConcurrency: 1})
	a := mustBind(t, l, 0, "a", sharedAddr)
	for _, host := range []string{"b", "c", "d"} {
		mustBeBusy(t, l, 0, host, sharedAddr)
	}
	l.ReleaseAfterTransfer(a, noon)
	wantReadyHosts(t, l, map[string]time.Duration{"b": 0})
	mustBeBusy(t, l, 10*sec, "d", sharedAddr)
	d := mustBind(t, l, 11*sec, "d", sharedAddr)
	mustBeBusy(t, l, 11*sec, "b", sharedAddr)
	l.ReleaseAfterTransfer(d, noon.Add(12*sec))
	wantReadyHosts(t, l, map[string]time.Duration{"c": 12 * sec})
}

// TestAHostThatRestsPassesItsTurn: the next host gets the turn at once.
func TestAHostThatRestsPassesItsTurn(t *testing.T) {
	l := politeness.NewLimiter(politeness.LimiterConfig{IPConcurrency: 1})
	a := mustBind(t, l, 0, "a", sharedAddr)
	mustBeBusy(t, l, 0, "b", sharedAddr)
	mustBeBusy(t, l, 0, "c", sharedAddr)
	l.ReleaseAfterTransfer(a, noon)
	wantReadyHosts(t, l, map[string]time.Duration{"b": 0})
	if _, d := l.Reserve(noon, "b", politeness.PermitRequest{NotBefore: noon.Add(
		sec)}); d.Reason != decorum.ReasonHostRest {
		t.Errorf("not due: %v", d.Err())
	}
	wantReadyHosts(t, l, map[string]time.Duration{"c": 0})
	mustBind(t, l, 0, "c", sharedAddr)
}

// TestLongQueue: each of 1,000 hosts on one address makes two calls for a visit: one is refused,
// and one follows the grant.
func TestLongQueue(t *testing.T) {
	const hosts, slots, delay = 1000, 2, 2 * sec
	l := politeness.NewLimiter(politeness.LimiterConfig{IPConcurrency: slots, IPDelay: delay})
	type activeVisit struct {
		permit politeness.Permit
		end    time.Duration
	}
	var active []activeVisit
	requests := map[time.Duration][]string{} // hosts that call Reserve, by time
	for i := range hosts {
		requests[0] = append(requests[0], fmt.Sprint("host", i))
	}
	requested, done, ended := 0, 0, -time.Hour
	const tick = 50 * time.Millisecond
	for now := time.Duration(0); done < hosts; now += tick {
		if now > 2*time.Hour {
			t.Fatalf("%d of %d visits after %v", done, hosts, now)
		}
		for len(active) > 0 && active[0].end <= now {
			l.ReleaseAfterTransfer(active[0].permit, noon.Add(now))
			active, ended, done = active[1:], now, done+1
		}
		for host, from := range l.TakeGrantedTurns() {
			at := max(now, from.Sub(noon))
			requests[at] = append(requests[at], host)
		}
		for _, host := range requests[now] {
			requested++
			p, err := requestAndBind(l, now, host, sharedAddr)
			if err != nil {
				continue
			}
			if active = append(active, activeVisit{p, now + 300*time.Millisecond}); len(active) > slots ||
				now-ended < delay {
				t.Fatalf("%d at a time, %v after the last", len(active), now-ended)
			}
		}
	}
	if requested > 2*hosts+slots {
		t.Errorf("%d calls of Reserve for %d visits", requested, hosts)
	}
	if minTime := hosts / slots * (300*time.Millisecond + delay); ended > minTime+delay {
		t.Errorf("took %v, the minimum is %v", ended, minTime)
	}
}

func TestAddressesAreForgotten(t *testing.T) {
	l := politeness.NewLimiter(politeness.LimiterConfig{IPConcurrency: 1, IPDelay: sec})
	for i := range 100_000 {
		now := time.Duration(i) * time.Millisecond
		addr := netip.AddrFrom4([4]byte{93, byte(i >> 16), byte(i >> 8), byte(i)})
		l.ReleaseAfterTransfer(mustBind(t, l, now, fmt.Sprint(i), addr), noon.Add(now))
		l.SetNextVisitAndCountBytes(fmt.Sprint(i), politeness.NextVisit{Due: noon.Add(now)}, 0)
	}
	if addresses, hosts := l.AddrCounts(); addresses > 10_000 || hosts > 10_000 {
		t.Errorf("remembers %d addresses, %d last addresses of hosts; 1,000 rest", addresses, hosts)
	}
}
