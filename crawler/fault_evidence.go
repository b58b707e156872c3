package crawler

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
)

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
