package crawler

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/politeness"
)

// A faultAttributor decides whether the host or this machine caused a visit to fail.
type faultAttributor struct {
	faultAttributorConfig
	timerLag timerLagMeter
}

type faultAttributorConfig struct {
	limiter  *politeness.Limiter
	hosts    *hostTable
	counters *counters
	log      *slog.Logger
	// usesMachineClock is false for a crawl with its own clock, which does not use this machine's
	// network.
	usesMachineClock bool
}

// attributeFault decides whether this machine or the host caused v to fail, and counts it. If it
// was this machine, the error of v gets the Kind LocalFailure. attributeFault may wait some seconds
// for the outcome of other visits.
func (a *faultAttributor) attributeFault(ctx context.Context, v *Visit) {
	a.decideFault(ctx, v)
	if isLocalFault(v) {
		a.counters.count(func(s *Stats) { s.LocalFaults++ })
		a.countIfBodyMemoryFull(v)
	}
}

// decideFault is attributeFault without the counts. It also records answers as evidence that the
// network works.
func (a *faultAttributor) decideFault(ctx context.Context, v *Visit) {
	switch {
	case !a.usesMachineClock: // see faultAttributorConfig
		return
	case v.reachedServer():
		a.limiter.NetworkBreaker().RecordAnswer(v.host(), v.Start)
		if !a.timerLag.wasOverloadedDuringVisit(v) {
			a.limiter.LocalOverloadLimiter().RecordAnswer()
		}
	case v.interrupted || v.wasNeverSent():
		return
	case isStaleConn(v) && a.hosts.useStaleConnAllowance(v.Lease):
		v.interrupted = true
		a.counters.count(func(s *Stats) { s.StaleConns++ })
		return
	default:
		a.attributeUnansweredVisit(ctx, v)
	}
	a.logBreakerChange(v)
}

// isStaleConn reports whether v failed because the server closed a kept-open connection. A request
// that must not be sent twice is not repeated, so it stays a failure.
func isStaleConn(v *Visit) bool {
	var stale *StaleConnError
	return errors.As(v.Err, &stale) && !v.unsafeSendRecorded
}

// reachedServer reports whether v proves that it reached the server.
func (v *Visit) reachedServer() bool {
	return v.Response != nil || isTLSError(v.Err) || isMalformedError(v.Err)
}

// host returns the host that v went to.
func (v *Visit) host() string { return v.URL().Origin().Host() }

// attributeUnansweredVisit is decideFault for a visit without an answer.
func (a *faultAttributor) attributeUnansweredVisit(ctx context.Context, v *Visit) {
	evidence, why, ok := machineFaultLikelihood(v.Err)
	if !ok {
		return
	}
	// A busy machine makes visits time out. Such time-outs are not charged to the host, up to a
	// limit.
	if isTimeout(v.Err) && a.timerLag.wasOverloadedDuringVisit(v) {
		a.limiter.LocalOverloadLimiter().RecordOverload(v.End, v.Start)
		if a.hosts.useTimeoutAllowance(v.Lease) {
			v.markLocalFailure("this machine is too busy")
			v.mayHaveArrived = true
			return
		}
	}
	if evidence == politeness.CertainlyMachine {
		a.limiter.LocalOverloadLimiter().RecordOverload(v.End, v.Start)
	}
	// Ask the breaker, which compares the failures of all hosts.
	addr := v.remoteAddr
	if !addr.IsValid() {
		addr = dialErrorAddr(v.Err)
	}
	pendingFailure := a.limiter.NetworkBreaker().RecordFailure(time.Now(), politeness.UnansweredVisit{
		Host: v.host(), Addr: addr, Start: v.Start, MachineFaultLikelihood: evidence, MachineFaultReason: why})
	if v.hostSlots > 1 { // with one slot, the host gets no other visit before this one is acked
		a.postponeHostForPendingFailure(ctx, v)
	}
	switch a.awaitFaultDecision(ctx, pendingFailure) {
	case politeness.MachineFault:
		v.markLocalFailure(why)
		v.mayHaveArrived = evidence == politeness.PossiblyMachine
	case politeness.UndecidedFault: // the crawl is being halted, or the lease has expired
		v.interrupted = true
	}
}

// postponeHostForPendingFailure makes the host of v rest from the end of v, as after a failure,
// until the UndecidedFailure about v is decided.
func (a *faultAttributor) postponeHostForPendingFailure(ctx context.Context, v *Visit) {
	origin := v.URL().Origin()
	delay, _, err := a.hosts.crawlDelays.hostDelayAndNextAllowedTime(commitContext(ctx), origin, v.End)
	if err != nil {
		delay = v.Lease.HostState.LostVisitDelay
	}
	next := a.hosts.politenessPolicyOf(origin.Host(), v.End).NextVisit(politeness.FinishedVisit{
		Host: origin.Host(), Start: v.Start, End: v.End, CrawlDelay: delay,
		Health: politeness.HostHealth{ConsecutiveFailures: v.Lease.HostState.ConsecutiveFailures}})
	a.limiter.PostponeHost(v.End, origin.Host(), v.End, next.Due)
}

// awaitFaultDecision returns what caused a failure. It returns UndecidedFault only if ctx is done
// first.
func (a *faultAttributor) awaitFaultDecision(ctx context.Context,
	d *politeness.UndecidedFailure) politeness.FaultAttribution {
	for {
		verdict, wait, changed := d.DecideFault(time.Now())
		if verdict != politeness.UndecidedFault {
			return verdict
		}
		select {
		case <-time.After(wait):
		case <-changed:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return politeness.UndecidedFault
		}
	}
}

// markLocalFailure gives the error of v the Kind LocalFailure. The error of a request that must not
// be sent twice stays InDoubt.
func (v *Visit) markLocalFailure(why string) {
	if v.unsafeSendRecorded {
		return
	}
	v.Err = &decorum.Error{Op: "fetch", URL: v.URL().String(), Kind: decorum.LocalFailure,
		Err: &NetworkOutageError{why, v.Err}}
	v.interrupted = true
}

// logBreakerChange logs, after v, that visits pause because of this machine, or that they resume.
func (a *faultAttributor) logBreakerChange(v *Visit) {
	switch s, changed := a.limiter.NetworkBreaker().PollStateChange(); {
	case !changed:
	case s.Open:
		a.log.Warn("visits are paused: they fail on this machine, and no host is charged",
			"why", s.Reason, "error", v.Err)
	case s.ClosedWithoutAnswer:
		a.log.Warn("visits resume, and hosts are charged again: no host has answered for too long",
			"why", s.Reason, "paused", time.Since(s.OpenedAt).Round(time.Second))
	default:
		a.log.Info("visits resume", "paused", time.Since(s.OpenedAt).Round(time.Second), "why", s.Reason)
	}
}

// A NetworkOutageError is the error of a Fetcher that failed before it reached the host, for
// example because the proxy is unreachable. The crawl pauses after it unless other hosts answer in
// the meantime.
type NetworkOutageError struct {
	Reason string // for people, for example "the proxy cannot be reached"
	Err    error  // the cause; may be nil
}

// Error returns the reason and the cause.
func (f *NetworkOutageError) Error() string {
	if f.Err == nil {
		return f.Reason
	}
	return f.Reason + ": " + f.Err.Error()
}

// Unwrap returns the cause.
func (f *NetworkOutageError) Unwrap() error { return f.Err }

// isLocalFault reports whether v failed on this machine; its URL then returns to the queue and its
// host is not charged. A request that must not be sent twice and may have been sent stays in doubt,
// even if this machine caused the failure.
func isLocalFault(v *Visit) bool {
	return v.Response == nil && errors.Is(v.Err, decorum.LocalFailure) && !errors.Is(v.Err, decorum.InDoubt)
}

// faultErrnos are the system errors that may be faults of this machine. A ProbablyMachine error may
// also be the fault of a single host, for example of one that has only IPv6 addresses, or that a
// firewall on this machine blocks.
var faultErrnos = []struct {
	errno    syscall.Errno
	evidence politeness.MachineFaultLikelihood
	why      string
}{
	{syscall.EMFILE, politeness.CertainlyMachine, "the process has no file descriptors left"},
	{syscall.ENFILE, politeness.CertainlyMachine, "the system has no file descriptors left"},
	{syscall.ENOBUFS, politeness.CertainlyMachine, "the system has no buffers left"},
	{syscall.ENOMEM, politeness.CertainlyMachine, "the system has no memory left"},
	{syscall.EADDRNOTAVAIL, politeness.ProbablyMachine, "no local address or port is available"},
	{syscall.EADDRINUSE, politeness.ProbablyMachine, "no local address or port is available"},
	{syscall.ENETDOWN, politeness.ProbablyMachine, "the network is down"},
	{syscall.ENETUNREACH, politeness.ProbablyMachine, "the network is unreachable"},
	{syscall.EPERM, politeness.ProbablyMachine, "the system does not permit connections"},
	{syscall.EACCES, politeness.ProbablyMachine, "the system does not permit connections"},
	{syscall.EHOSTUNREACH, politeness.PossiblyMachine, reasonNoHostAnswers},
}

// reasonNoHostAnswers is the reason given when all hosts fail.
const reasonNoHostAnswers = "no host answers"

// machineFaultLikelihood returns how likely err is a fault of this machine, and which fault. It
// returns false if only the host can have caused err.
func machineFaultLikelihood(err error) (e politeness.MachineFaultLikelihood, why string, ok bool) {
	dns, lookup := errors.AsType[*net.DNSError](err) // it has the system's error as text only
	var fault *NetworkOutageError
	for _, n := range faultErrnos {
		if errors.Is(err, n.errno) || lookup && strings.Contains(dns.Err, n.errno.Error()) {
			if (n.errno == syscall.ENETUNREACH || n.errno == syscall.EADDRNOTAVAIL) && machineLacksIPVersion(err) {
				return politeness.PossiblyMachine, reasonNoHostAnswers, true
			}
			return n.evidence, n.why, true
		}
	}
	switch {
	case lookup && dns.IsNotFound:
		return 0, "", false
	case lookup && strings.Contains(dns.Err, syscall.ECONNREFUSED.Error()):
		return politeness.ProbablyMachine, "the name server cannot be reached", true
	case errors.As(err, &fault):
		return politeness.ProbablyMachine, fault.Reason, true
	case lookup, errors.Is(err, syscall.ECONNREFUSED), isTimeout(err):
		return politeness.PossiblyMachine, reasonNoHostAnswers, true
	}
	return 0, "", false
}

// isTimeout reports whether err is an expired time limit.
func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// machineLacksIPVersion reports whether this machine has no route for the IP version of the address
// in err, but has one for the other version. Looking up a route sends no packet.
func machineLacksIPVersion(err error) bool {
	addr := dialErrorAddr(err)
	if !addr.IsValid() {
		return false
	}
	network, other := "udp6", "[2001:db8::1]:9" // addresses for documentation (RFC 3849, RFC 5737)
	if addr.Is6() {
		network, other = "udp4", "192.0.2.1:9"
	}
	conn, err := net.Dial(network, other)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// dialErrorAddr returns the address that err could not connect to; the zero Addr if err names none.
func dialErrorAddr(err error) netip.Addr {
	var op *net.OpError
	if !errors.As(err, &op) || op.Addr == nil {
		return netip.Addr{}
	}
	ap, _ := netip.ParseAddrPort(op.Addr.String())
	return ap.Addr().Unmap()
}

// memoryRetryDelay is how long a URL waits if its visit got no memory before it sent the request.
const memoryRetryDelay = 5 * time.Second

// countIfBodyMemoryFull counts a visit that got no memory for its body, and logs the first of a
// series.
func (a *faultAttributor) countIfBodyMemoryFull(v *Visit) {
	var fullErr *bodymem.FullError
	if !errors.As(v.Err, &fullErr) {
		return
	}
	a.counters.count(func(s *Stats) { s.MemoryDeniedVisits++ })
	if fullErr.FirstInSeries {
		a.log.Warn("bodies take all of their memory; visits that get none are made again later, and no host is charged",
			"limit", fullErr.MemorySize, "url", v.URL())
	}
}

// lagTick is how often a timerLagMeter measures.
const lagTick = 100 * time.Millisecond

// A machine was too busy for a visit if timers were late for more than minLagShare of the visit's
// time, and for at least minLag in total: a shorter lag makes no visit with a reasonable time limit
// time out. On 2 idle processors the share is below 0.01; with 8 other computing processes it is
// 0.1, with 64 busy goroutines 0.2, with 500 of them 0.5.
const (
	minLagShare = 0.1
	minLag      = 500 * time.Millisecond
	// maxUnchargedTimeouts is how many consecutive time-outs are not charged to a host because the
	// machine was too busy. The limit lets a machine that is always busy find dead hosts, too.
	maxUnchargedTimeouts = 3
)

// maxUnchargedStaleConns is how many consecutive visits of a host may end with a StaleConnError before
// the host is charged: a host with several slots has several kept-open connections, and a server that
// closes every connection at the second request must not be asked for ever.
// The same holds for a page at whose request the server always closes the connection.
const maxUnchargedStaleConns = 3

// maxStaleConnPages is how many such pages of a host are remembered, at least.
const maxStaleConnPages = 16

// A timerLagMeter measures, while visits are in flight, how late the timers of this process fire,
// because it has too many goroutines to run or because other processes use the machine. In a bubble
// of testing/synctest timers are never late.
type timerLagMeter struct {
	mu           sync.Mutex    // guards activeVisits, totalLag, nextTick and timer
	activeVisits int           // visits in flight
	totalLag     time.Duration // lateness of all ticks
	nextTick     time.Time     // when the current tick is due
	timer        *time.Timer
}

// beginVisit counts a visit as in flight, and returns the total lag so far. The caller must call
// endVisit.
func (m *timerLagMeter) beginVisit() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.activeVisits++; m.activeVisits == 1 {
		m.scheduleTick()
	}
	return m.totalLag
}

// endVisit counts the visit as over, and returns the total lag so far.
func (m *timerLagMeter) endVisit() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.addCurrentTickLag()
	if m.activeVisits--; m.activeVisits == 0 {
		m.timer.Stop()
	}
	return m.totalLag
}

// onTick measures the tick that is due, and schedules the next.
func (m *timerLagMeter) onTick() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.activeVisits > 0 {
		m.addCurrentTickLag()
		m.scheduleTick()
	}
}

// scheduleTick starts the timer of the next tick. The caller holds m.mu.
func (m *timerLagMeter) scheduleTick() {
	m.nextTick = time.Now().Add(lagTick)
	if m.timer == nil {
		m.timer = time.AfterFunc(lagTick, m.onTick)
	} else {
		m.timer.Reset(lagTick)
	}
}

// addCurrentTickLag adds the lateness of the current tick. The caller holds m.mu.
func (m *timerLagMeter) addCurrentTickLag() {
	if now := time.Now(); now.After(m.nextTick) {
		m.totalLag += now.Sub(m.nextTick)
		m.nextTick = now
	}
}

// wasOverloadedDuringVisit reports whether the machine was too busy during v.
func (*timerLagMeter) wasOverloadedDuringVisit(v *Visit) bool {
	return v.timerLag >= minLag && float64(v.timerLag) > minLagShare*float64(v.End.Sub(v.Start))
}
