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

var shared = netip.MustParseAddr("93.184.216.34")

// visit asks for a permit and binds it, as a visit does that goes to addr.
func visit(l *politeness.Limits, after time.Duration, host string, addr netip.Addr) (politeness.Permit, error) {
	p, err := l.Request(noon.Add(after), host, politeness.Wish{Slots: 9})
	if err != nil {
		return p, err
	}
	if err := p.Bind(noon.Add(after), addr); err != nil {
		l.Release(noon.Add(after), p)
		return politeness.Permit{}, err
	}
	return p, nil
}

// enters fails the test unless the visit may begin.
func enters(t *testing.T, l *politeness.Limits, after time.Duration, host string, addr netip.Addr) politeness.Permit {
	t.Helper()
	p, err := visit(l, after, host, addr)
	if err != nil {
		t.Fatalf("%s after %v: %v", host, after, err)
	}
	return p
}

// waits fails the test unless the visit is turned away, and returns until when.
func waits(t *testing.T, l *politeness.Limits, after time.Duration, host string, addr netip.Addr) time.Duration {
	t.Helper()
	_, err := visit(l, after, host, addr)
	var busy *politeness.Busy
	if !errors.As(err, &busy) || !errors.Is(err, decorum.NotDue) {
		t.Fatalf("%s after %v: %v, want Busy", host, after, err)
	}
	return busy.Until.Sub(noon)
}

// calls fails the test unless these hosts are called, each from so long after noon on.
func calls(t *testing.T, l *politeness.Limits, want map[string]time.Duration) {
	t.Helper()
	got := l.Calls()
	if len(got) != len(want) {
		t.Errorf("called: %v, want %v", got, want)
	}
	for host, from := range want {
		if !got[host].Equal(noon.Add(from)) {
			t.Errorf("%s is called from %v on, want %v after noon", host, got[host], from)
		}
	}
}

func TestAddressIsShared(t *testing.T) {
	l := politeness.NewLimits(politeness.LimitsConfig{IPConcurrency: 2, IPDelay: 3 * sec})
	other := netip.MustParseAddr("2606:2800:220:1::1")
	a := enters(t, l, 0, "a", shared)
	b := enters(t, l, 0, "b", netip.MustParseAddr("::ffff:93.184.216.34")) // the same
	waits(t, l, 0, "c", shared)
	waits(t, l, 0, "d", shared)
	waits(t, l, 0, "e", shared)
	enters(t, l, 0, "f", other)

	l.Leave(a, noon.Add(sec))
	calls(t, l, map[string]time.Duration{"c": 4 * sec})
	if until := waits(t, l, 2*sec, "c", shared); until != 4*sec {
		t.Errorf("c is told to come after %v", until)
	}
	l.Leave(b, noon.Add(2*sec)) // the rest begins anew, for c too
	calls(t, l, map[string]time.Duration{"c": 5 * sec, "d": 5 * sec})
	if from, ok := l.Called("c"); !ok || !from.Equal(noon.Add(5*sec)) {
		t.Errorf("c: called %t, from %v", ok, from)
	}
	waits(t, l, 4*sec, "c", shared)
	waits(t, l, 5*sec, "x", shared) // behind those who wait
	enters(t, l, 5*sec, "c", shared)
	enters(t, l, 5*sec, "d", shared)
	calls(t, l, nil)
}

// TestAddressIsAskedForOnce: a host whose address is known is refused before
// anything is dialled, and asking again changes neither its place nor the slots.
func TestAddressIsAskedForOnce(t *testing.T) {
	l := politeness.NewLimits(politeness.LimitsConfig{IPConcurrency: 1})
	a := enters(t, l, 0, "a", shared)
	if err := a.Bind(noon, shared); err != nil {
		t.Errorf("the same address again: %v", err)
	}
	waits(t, l, 0, "b", shared)
	waits(t, l, 0, "c", shared)
	for range 3 {
		if _, err := l.Request(noon, "b", politeness.Wish{NotBefore: noon}); !errors.Is(err, decorum.NotDue) {
			t.Errorf("known to be busy: %v", err)
		}
	}
	l.Leave(a, noon.Add(sec))
	l.Leave(a, noon.Add(sec))           // once is enough
	l.Release(noon.Add(sec), a)         // and this too late
	waits(t, l, sec, "c", shared)       // it is b's turn
	b := enters(t, l, sec, "b", shared) // now it is over
	l.Release(noon.Add(sec), b)         // nothing was sent
	enters(t, l, sec, "c", shared)
	if err := b.Bind(noon, shared); !errors.Is(err, decorum.Unticketed) {
		t.Errorf("a permit that came back: %v", err)
	}
	if err := (politeness.Permit{}).Bind(noon, shared); !errors.Is(err, decorum.Unticketed) {
		t.Errorf("no permit: %v", err)
	}
}

// TestAddressMoves: the connection goes elsewhere than the last one went. The
// slot that Request took is given back without a rest.
func TestAddressMoves(t *testing.T) {
	l := politeness.NewLimits(politeness.LimitsConfig{IPConcurrency: 1, IPDelay: 3 * sec})
	l.Leave(enters(t, l, 0, "a", shared), noon)
	p, err := l.Request(noon.Add(3*sec), "a", politeness.Wish{NotBefore: noon, Slots: 9})
	if err != nil {
		t.Fatal(err)
	}
	waits(t, l, 3*sec, "b", shared)
	if err := p.Bind(noon.Add(3*sec), netip.MustParseAddr("93.184.216.35")); err != nil {
		t.Fatal(err)
	}
	calls(t, l, map[string]time.Duration{"b": 3 * sec})
	enters(t, l, 3*sec, "b", shared)
}

// TestAHostThatMovesLeavesTheLine of the address where it waited.
func TestAHostThatMovesLeavesTheLine(t *testing.T) {
	l := politeness.NewLimits(politeness.LimitsConfig{IPConcurrency: 1})
	a := enters(t, l, 0, "a", shared)
	first, err := l.Request(noon, "b", politeness.Wish{NotBefore: noon, Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	waits(t, l, 0, "b", shared)
	if err := first.Bind(noon, netip.MustParseAddr("93.184.216.35")); err != nil {
		t.Fatal(err)
	}
	waits(t, l, 0, "c", shared)
	l.Leave(a, noon)
	calls(t, l, map[string]time.Duration{"c": 0})
}

func TestLoopbackIsTheOperatorsOwn(t *testing.T) {
	local := netip.MustParseAddr("127.0.0.1")
	l := politeness.NewLimits(politeness.LimitsConfig{IPConcurrency: 1})
	enters(t, l, 0, "a", local)
	enters(t, l, 0, "b", local)
	l = politeness.NewLimits(politeness.LimitsConfig{IPConcurrency: 1, IPLoopback: true})
	enters(t, l, 0, "a", local)
	waits(t, l, 0, "b", local)
	l = politeness.NewLimits(politeness.LimitsConfig{})
	enters(t, l, 0, "a", shared)
	enters(t, l, 0, "b", shared)
}

func TestAddressRestsAfterARestart(t *testing.T) {
	l := politeness.NewLimits(politeness.LimitsConfig{IPConcurrency: 2, IPDelay: 3 * sec, Restarted: noon})
	if until := waits(t, l, sec, "a", shared); until != 3*sec {
		t.Errorf("told to come after %v, want 3s", until)
	}
	enters(t, l, 3*sec, "a", shared)
}

// TestTurnsLapse: who was called and does not come holds nobody up.
func TestTurnsLapse(t *testing.T) {
	l := politeness.NewLimits(politeness.LimitsConfig{IPConcurrency: 1})
	a := enters(t, l, 0, "a", shared)
	for _, host := range []string{"b", "c", "d"} {
		waits(t, l, 0, host, shared)
	}
	l.Leave(a, noon)
	calls(t, l, map[string]time.Duration{"b": 0})
	waits(t, l, 10*sec, "d", shared)
	d := enters(t, l, 11*sec, "d", shared)
	waits(t, l, 11*sec, "b", shared)
	l.Leave(d, noon.Add(12*sec))
	calls(t, l, map[string]time.Duration{"c": 12 * sec})
}

// TestAHostThatRestsPassesItsTurn on to the next at once.
func TestAHostThatRestsPassesItsTurn(t *testing.T) {
	l := politeness.NewLimits(politeness.LimitsConfig{IPConcurrency: 1})
	a := enters(t, l, 0, "a", shared)
	waits(t, l, 0, "b", shared)
	waits(t, l, 0, "c", shared)
	l.Leave(a, noon)
	calls(t, l, map[string]time.Duration{"b": 0})
	if _, err := l.Request(noon, "b", politeness.Wish{NotBefore: noon.Add(sec)}); !errors.As(err, new(politeness.TooEarly)) {
		t.Errorf("not due: %v", err)
	}
	calls(t, l, map[string]time.Duration{"c": 0})
	enters(t, l, 0, "c", shared)
}

// TestLongLine: 1,000 hosts that share an address are asked about twice a
// visit: when they are turned away, and when they are called.
func TestLongLine(t *testing.T) {
	const hosts, slots, rest = 1000, 2, 2 * sec
	l := politeness.NewLimits(politeness.LimitsConfig{IPConcurrency: slots, IPDelay: rest})
	type going struct {
		permit politeness.Permit
		end    time.Duration
	}
	var out []going
	come := map[time.Duration][]string{} // who asks, and when
	for i := range hosts {
		come[0] = append(come[0], fmt.Sprint("host", i))
	}
	asked, done, ended := 0, 0, -time.Hour
	const tick = 50 * time.Millisecond
	for now := time.Duration(0); done < hosts; now += tick {
		if now > 2*time.Hour {
			t.Fatalf("%d of %d visits after %v", done, hosts, now)
		}
		for len(out) > 0 && out[0].end <= now {
			l.Leave(out[0].permit, noon.Add(now))
			out, ended, done = out[1:], now, done+1
		}
		for host, from := range l.Calls() {
			at := max(now, from.Sub(noon))
			come[at] = append(come[at], host)
		}
		for _, host := range come[now] {
			asked++
			p, err := visit(l, now, host, shared)
			if err != nil {
				continue
			}
			if out = append(out, going{p, now + 300*time.Millisecond}); len(out) > slots || now-ended < rest {
				t.Fatalf("%d at a time, %v after the last", len(out), now-ended)
			}
		}
	}
	if asked > 2*hosts+slots {
		t.Errorf("asked %d times for %d visits", asked, hosts)
	}
	if minTime := hosts / slots * (300*time.Millisecond + rest); ended > minTime+rest {
		t.Errorf("took %v, possible were %v", ended, minTime)
	}
}

func TestAddressesAreForgotten(t *testing.T) {
	l := politeness.NewLimits(politeness.LimitsConfig{IPConcurrency: 1, IPDelay: sec})
	for i := range 100_000 {
		now := time.Duration(i) * time.Millisecond
		addr := netip.AddrFrom4([4]byte{93, byte(i >> 16), byte(i >> 8), byte(i)})
		l.Leave(enters(t, l, now, fmt.Sprint(i), addr), noon.Add(now))
		l.Ended(fmt.Sprint(i), politeness.Rest{Due: noon.Add(now)}, 0)
	}
	if addresses, homes := l.Addresses(); addresses > 10_000 || homes > 10_000 {
		t.Errorf("remembers %d addresses, %d homes; 1,000 rest", addresses, homes)
	}
}
