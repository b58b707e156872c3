package crawler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// A timeoutError is a time-out as fetchers return it.
type timeoutError struct{}

func (timeoutError) Error() string { return "no whole answer within 30s" }
func (timeoutError) Timeout() bool { return true }

// TestEvidence: each error is classified as a fault of this machine or of the host.
func TestEvidence(t *testing.T) {
	connect := func(addr string, errno syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(mustAddrPort(t, addr)),
			Err: os.NewSyscallError("connect", errno)}
	}
	dns := func(text string, notFound bool) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: text, Name: "a.test", IsNotFound: notFound}}
	}
	const possible, probable, certain = politeness.PossiblyMachine, politeness.ProbablyMachine,
		politeness.CertainlyMachine
	const none = politeness.MachineFaultLikelihood(99)
	tests := []struct {
		name string
		err  error
		want politeness.MachineFaultLikelihood
	}{
		{"no descriptor for a socket", connect("192.0.2.1:80", syscall.EMFILE), certain},
		{"no descriptor for a look-up", dns("dial udp 10.0.0.1:53: socket: too many open files", false), certain},
		{"no descriptor in the system", connect("192.0.2.1:80", syscall.ENFILE), certain},
		{"no buffers", connect("192.0.2.1:80", syscall.ENOBUFS), certain},
		{"no local port", connect("192.0.2.1:80", syscall.EADDRINUSE), probable},
		{"network down", connect("192.0.2.1:80", syscall.ENETDOWN), probable},
		{"firewall", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EPERM)}, probable},
		{"no route to the name server", dns("dial udp 10.0.0.1:53: connect: network is unreachable", false), probable},
		{"name server refuses", dns("read udp 127.0.0.1:4000->127.0.0.1:53: read: connection refused", false),
			probable},
		{"proxy", &NetworkOutageError{"the proxy cannot be reached", connect("192.0.2.1:80", syscall.ECONNREFUSED)},
			probable},
		{"name server fails for a name", dns("server misbehaving", false), possible},
		{"host refuses", connect("192.0.2.1:80", syscall.ECONNREFUSED), possible},
		{"host unreachable", connect("192.0.2.1:80", syscall.EHOSTUNREACH), possible},
		{"time-out", fmt.Errorf("fetch: %w", timeoutError{}), possible},
		{"no such name", dns("no such host", true), none},
		{"reset", os.NewSyscallError("read", syscall.ECONNRESET), none},
		{"cut", io.ErrUnexpectedEOF, none},
	}
	for _, tt := range tests {
		got, why, ok := machineFaultLikelihood(tt.err)
		if !ok {
			got = none
		}
		if got != tt.want || ok && why == "" {
			t.Errorf("%s: evidence %d (%q), want %d", tt.name, got, why, tt.want)
		}
	}
}

// TestEvidenceOfOneFamily: if this machine has no route for the IP version of all of a host's
// addresses, the crawl does not assume an outage.
func TestEvidenceOfOneFamily(t *testing.T) {
	conn, err := net.Dial("udp4", "192.0.2.1:9")
	if err != nil {
		t.Skip("this machine has no route for IPv4:", err)
	}
	conn.Close()
	err = &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(mustAddrPort(t, "[2001:db8::2]:80")),
		Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}
	if got, _, _ := machineFaultLikelihood(err); got != politeness.PossiblyMachine {
		t.Errorf("evidence %d, want Possible", got)
	}
}

// TestTimeoutsOfABusyMachine: a time-out while timers are late is not charged to the host, at most
// three times in a row, and lowers the number of concurrent visits; one while timers are on time is
// charged.
func TestTimeoutsOfABusyMachine(t *testing.T) {
	limiter, hosts := politeness.NewLimiter(politeness.LimiterConfig{}), &hostTable{}
	faults := faultAttributor{faultAttributorConfig: faultAttributorConfig{
		limiter: limiter, hosts: hosts, counters: &counters{},
		log: slog.New(slog.DiscardHandler), usesMachineClock: true}}
	lease := storage.Lease{Token: 1}
	hosts.acquireHost(lease)
	start := time.Now()
	visit := func(lag time.Duration) *Visit {
		start = start.Add(time.Minute)
		v := &Visit{Lease: lease, Start: start, End: start.Add(30 * time.Second), Err: timeoutError{},
			timerLag: lag, hostSlots: 1}
		faults.attributeFault(context.Background(), v)
		return v
	}
	for range 8 {
		if _, d := limiter.Reserve(start, fmt.Sprint(start), politeness.PermitRequest{}); d.Action != decorum.Proceed {
			t.Fatal(d.Err())
		}
		start = start.Add(time.Second)
	}
	if v := visit(2 * time.Second); isLocalFault(v) || limiter.LocalOverloadLimiter().Limit() != 0 {
		t.Errorf("a time-out of a machine that is hardly late: %v, limit %d", v.Err,
			limiter.LocalOverloadLimiter().Limit())
	}
	for n := range maxUnchargedTimeouts + 1 {
		v := visit(4 * time.Second)
		if want := n < maxUnchargedTimeouts; isLocalFault(v) != want || !errors.Is(v.Err, timeoutError{}) {
			t.Errorf("time-out %d of a machine that is late: %v, want that it is local: %v", n+1, v.Err, want)
		}
	}
	if limit := limiter.LocalOverloadLimiter().Limit(); limit != 1 {
		t.Errorf("the limit is %d, want 8 halved four times, and 1 at least", limit)
	}
}

// TestStaleConnAllowance: a host is charged for the fourth visit in a row that a closed kept-open
// connection ends, and an answer in between restores the allowance.
func TestStaleConnAllowance(t *testing.T) {
	hosts := &hostTable{}
	faults := faultAttributor{faultAttributorConfig: faultAttributorConfig{
		limiter: politeness.NewLimiter(politeness.LimiterConfig{}), hosts: hosts, counters: &counters{},
		log: slog.New(slog.DiscardHandler), usesMachineClock: true}}
	lease, other := storage.Lease{Token: 1}, storage.Lease{Token: 2}
	lease.URL, other.URL = mustParseURL(t, "http://a.test/"), mustParseURL(t, "http://a.test/other")
	hosts.acquireHost(lease)
	isCharged := func() bool {
		v := &Visit{Lease: lease, Err: &StaleConnError{io.EOF}, hostSlots: 1}
		faults.attributeFault(context.Background(), v)
		return !v.interrupted
	}
	for n := range maxUnchargedStaleConns + 1 {
		if got, want := isCharged(), n == maxUnchargedStaleConns; got != want {
			t.Errorf("visit %d is charged: %v, want %v", n+1, got, want)
		}
	}
	hosts.countVisit(&Visit{Lease: lease, Response: &decorum.Response{Status: 200}}, 0, 0)
	if isCharged() {
		t.Error("a visit after an answer is charged")
	}
	for n := range maxUnchargedStaleConns {
		hosts.countVisit(&Visit{Lease: other, Response: &decorum.Response{Status: 200}}, 0, 0)
		if got, want := isCharged(), n+2 > maxUnchargedStaleConns; got != want {
			t.Errorf("visit %d after answers of another page is charged: %v, want %v", n+2, got, want)
		}
	}
	sent := &Visit{Lease: lease, Err: &StaleConnError{io.EOF}, unsafeSendRecorded: true, hostSlots: 1}
	if faults.attributeFault(context.Background(), sent); sent.interrupted {
		t.Error("a request that must not be sent twice is repeated")
	}
}

// TestLagMeter: the meter sums how late ticks are while visits are in flight.
func TestLagMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m timerLagMeter
		before := m.beginVisit()
		time.Sleep(time.Minute) // on time, by the clock of the bubble
		m.mu.Lock()
		m.nextTick = time.Now().Add(-3 * time.Second) // as in a process that was stopped for 3 s
		m.mu.Unlock()
		if got := m.endVisit() - before; got != 3*time.Second {
			t.Errorf("the lag is %v, want 3s", got)
		}
		m.beginVisit()
		if got := m.endVisit(); got != 3*time.Second {
			t.Errorf("the lag is %v in sum, want 3s", got)
		}
	})
}

func mustAddrPort(t *testing.T, s string) netip.AddrPort {
	t.Helper()
	ap, err := netip.ParseAddrPort(s)
	if err != nil {
		t.Fatal(err)
	}
	return ap
}
