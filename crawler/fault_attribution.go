package crawler

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/politeness"
)

// attributeFault decides whether this machine or the host is to blame for a failed v. If this
// machine is, the error of v gets the Kind Local. blame may wait some seconds for the
// outcome of other visits.
func (c *Crawler) attributeFault(ctx context.Context, v *Visit) {
	switch {
	case c.Now != nil: // such a crawl has its own clock and does not use this machine's network
		return
	case v.reachedServer():
		c.Limiter.NetworkBreaker().RecordAnswer(v.host(), v.Start)
		if !c.timerLag.wasOverloadedDuringVisit(v) {
			c.Limiter.LocalLoadLimiter().RecordAnswer()
		}
	case v.interrupted || v.wasNeverSent():
		return
	default:
		c.attributeUnansweredVisit(ctx, v)
	}
	c.logBreakerChange(v)
}

// reachedServer reports whether v shows that its server was reached.
func (v *Visit) reachedServer() bool {
	return v.Response != nil || isTLSError(v.Err) || isMalformedError(v.Err)
}

// host returns the host that was visited.
func (v *Visit) host() string { return v.URL().Origin().Host() }

// attributeUnansweredVisit is blame for a visit without an answer.
func (c *Crawler) attributeUnansweredVisit(ctx context.Context, v *Visit) {
	evidence, why, ok := machineFaultLikelihood(v.Err)
	if !ok {
		return
	}
	if isTimeout(v.Err) && c.timerLag.wasOverloadedDuringVisit(v) {
		c.Limiter.LocalLoadLimiter().RecordOverload(v.End, v.Start)
		if c.hostTable.tryAttributeTimeoutToMachine(v.Lease) {
			v.markLocalFailure("this machine is too busy")
			v.mayHaveArrived = true
			return
		}
	}
	if evidence == politeness.CertainlyMachine {
		c.Limiter.LocalLoadLimiter().RecordOverload(v.End, v.Start)
	}
	addr := v.remoteAddr
	if !addr.IsValid() {
		addr = dialErrorAddr(v.Err)
	}
	pendingFailure := c.Limiter.NetworkBreaker().RecordFailure(time.Now(), politeness.UnansweredVisit{
		Host: v.host(), Addr: addr, Start: v.Start, MachineFaultLikelihood: evidence, MachineFaultReason: why})
	if v.hostSlots > 1 { // else the host gets no other visit before this one is acked
		c.postponeHostForPendingFailure(ctx, v)
	}
	switch c.awaitFaultDecision(ctx, pendingFailure) {
	case politeness.MachineFault:
		v.markLocalFailure(why)
		v.mayHaveArrived = evidence == politeness.PossiblyMachine
	case politeness.UndecidedFault: // the crawl is being halted, or the lease has run out
		v.interrupted = true
	}
}

// postponeHostForPendingFailure keeps the host of v at rest from the end of v, as after a failure,
// until the UndecidedFailure about v is decided.
func (c *Crawler) postponeHostForPendingFailure(ctx context.Context, v *Visit) {
	origin := v.URL().Origin()
	delay, _, err := c.hostDelayAndNextAllowedTime(commitContext(ctx), origin, v.End)
	if err != nil {
		delay = v.Lease.HostState.LostVisitDelay
	}
	next := c.politenessPolicyOf(origin.Host(), v.End).NextVisit(politeness.FinishedVisit{
		Host: origin.Host(), Start: v.Start, End: v.End, CrawlDelay: delay, ConsecutiveFailures: v.Lease.HostState.ConsecutiveFailures})
	c.Limiter.PostponeHost(v.End, origin.Host(), v.End, next.Due)
}

// awaitFaultDecision returns the verdict of a doubt. It returns UndecidedFault only if ctx is done first.
func (c *Crawler) awaitFaultDecision(ctx context.Context, d *politeness.UndecidedFailure) politeness.FaultAttribution {
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

// markLocalFailure gives the error of v the Kind Local. The error of a request that must not be
// sent twice stays InDoubt.
func (v *Visit) markLocalFailure(why string) {
	if v.unsafeSendRecorded {
		return
	}
	v.Err = &decorum.Error{Op: "fetch", URL: v.URL().String(), Kind: decorum.LocalFailure, Err: &NetworkOutageError{why, v.Err}}
	v.interrupted = true
}

// logBreakerChange logs, after v, that visits pause because of this machine, or that they
// start again.
func (c *Crawler) logBreakerChange(v *Visit) {
	switch s, changed := c.Limiter.NetworkBreaker().PollStateChange(); {
	case !changed:
	case s.Open:
		c.Log.Warn("visits are paused: they fail on this machine, and no host is charged", "why", s.Reason, "error", v.Err)
	case s.ClosedWithoutAnswer:
		c.Log.Warn("visits go on, and hosts are charged again: none has answered for too long",
			"why", s.Reason, "paused", time.Since(s.OpenedAt).Round(time.Second))
	default:
		c.Log.Info("visits go on", "paused", time.Since(s.OpenedAt).Round(time.Second), "why", s.Reason)
	}
}

// A NetworkOutageError is the error of a Fetcher that failed before it reached the host, for
// example because the proxy is unreachable. The crawl pauses for it unless other hosts
// answer in the meantime.
type NetworkOutageError struct {
	Reason string // for people: "the proxy cannot be reached"
	Err    error  // the cause; may be nil
}

// Error returns what failed, and the cause.
func (f *NetworkOutageError) Error() string {
	if f.Err == nil {
		return f.Reason
	}
	return f.Reason + ": " + f.Err.Error()
}

// Unwrap returns the cause.
func (f *NetworkOutageError) Unwrap() error { return f.Err }

// isLocalFault reports whether v failed on this machine; its URL then returns to the queue
// and its host is not charged. A request that must not be sent twice and may have been
// sent stays in doubt, even if this machine is to blame.
func isLocalFault(v *Visit) bool {
	return v.Response == nil && errors.Is(v.Err, decorum.LocalFailure) && !errors.Is(v.Err, decorum.InDoubt)
}

// faultErrnos are the system's errors that may be faults of this machine. A ProbablyMachine one may
// also be the fault of a single host, for example of one that has only IPv6 addresses,
// or that a firewall on this machine blocks.
var faultErrnos = []struct {
	errno    syscall.Errno
	evidence politeness.MachineFaultLikelihood
	why      string
}{
	{syscall.EMFILE, politeness.CertainlyMachine, "the process has no file descriptors left"},
	{syscall.ENFILE, politeness.CertainlyMachine, "the system has no file descriptors left"},
	{syscall.ENOBUFS, politeness.CertainlyMachine, "the system has no buffers left"},
	{syscall.ENOMEM, politeness.CertainlyMachine, "the system has no memory left"},
	{syscall.EADDRNOTAVAIL, politeness.ProbablyMachine, "there is no local address or port to connect from"},
	{syscall.EADDRINUSE, politeness.ProbablyMachine, "there is no local address or port to connect from"},
	{syscall.ENETDOWN, politeness.ProbablyMachine, "the network is down"},
	{syscall.ENETUNREACH, politeness.ProbablyMachine, "the network is unreachable"},
	{syscall.EPERM, politeness.ProbablyMachine, "the system does not permit connections"},
	{syscall.EACCES, politeness.ProbablyMachine, "the system does not permit connections"},
	{syscall.EHOSTUNREACH, politeness.PossiblyMachine, reasonNoHostAnswers},
}

// reasonNoHostAnswers is the reason given when all hosts fail.
const reasonNoHostAnswers = "no host answers"

// machineFaultLikelihood returns how likely err is a fault of this machine, and which fault; false
// if the host is to blame in any case.
func machineFaultLikelihood(err error) (e politeness.MachineFaultLikelihood, why string, ok bool) {
	dns, lookup := errors.AsType[*net.DNSError](err) // it wraps the system's error as text only
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

// machineLacksIPVersion reports whether this machine has no route for the version of IP of the
// address in err, but has one for the other version. Finding a route sends no packet.
func machineLacksIPVersion(err error) bool {
	addr := dialErrorAddr(err)
	if !addr.IsValid() {
		return false
	}
	network, other := "udp6", "[2001:db8::1]:9" // for documentation (RFC 3849, RFC 5737)
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

// dialErrorAddr returns the address that err could not connect to, if err names it.
func dialErrorAddr(err error) netip.Addr {
	var op *net.OpError
	if !errors.As(err, &op) || op.Addr == nil {
		return netip.Addr{}
	}
	ap, _ := netip.ParseAddrPort(op.Addr.String())
	return ap.Addr().Unmap()
}

// memoryRetryDelay is how long a URL waits after its visit got no memory before its request was
// sent.
const memoryRetryDelay = 5 * time.Second

// countIfBodyMemoryFull counts a visit that got no memory for its body, and logs the first of a
// series.
func (c *Crawler) countIfBodyMemoryFull(v *Visit) {
	var fullErr *bodymem.FullError
	if !errors.As(v.Err, &fullErr) {
		return
	}
	c.counters.count(func(s *Stats) { s.MemoryDeniedVisits++ })
	if fullErr.FirstInSeries {
		c.Log.Warn("bodies take all of their memory; visits that get none are made again later, and no host is charged",
			"limit", fullErr.MemorySize, "url", v.URL())
	}
}
