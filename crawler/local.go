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

// A NetworkFault is the error of a Fetcher that failed on the way to a host, before the
// host had a part in it: the proxy cannot be reached, say. The crawl pauses for it,
// unless other hosts answer meanwhile.
type NetworkFault struct {
	Why string // for people: "the proxy cannot be reached"
	Err error  // the cause; may be nil
}

// Error returns what failed, and the cause.
func (f *NetworkFault) Error() string {
	if f.Err == nil {
		return f.Why
	}
	return f.Why + ": " + f.Err.Error()
}

// Unwrap returns the cause.
func (f *NetworkFault) Unwrap() error { return f.Err }

// isLocal reports whether v failed on this machine, so that its URL goes back and
// its host is not charged. A request that must not be sent twice and may have been
// sent is in doubt, whoever is to blame.
func isLocal(v *Visit) bool {
	return v.Response == nil && errors.Is(v.Err, decorum.Local) && !errors.Is(v.Err, decorum.InDoubt)
}

// errnos are the errors of the system that speak of this machine. Of those that are
// Probable, some hosts are to blame alone: a host that has only addresses of IPv6, say,
// or one that a firewall on this machine keeps the crawl from.
var errnos = []struct {
	errno    syscall.Errno
	evidence politeness.Evidence
	why      string
}{
	{syscall.EMFILE, politeness.Certain, "the process has no file descriptors left"},
	{syscall.ENFILE, politeness.Certain, "the system has no file descriptors left"},
	{syscall.ENOBUFS, politeness.Certain, "the system has no buffers left"},
	{syscall.ENOMEM, politeness.Certain, "the system has no memory left"},
	{syscall.EADDRNOTAVAIL, politeness.Probable, "there is no local address or port to connect from"},
	{syscall.EADDRINUSE, politeness.Probable, "there is no local address or port to connect from"},
	{syscall.ENETDOWN, politeness.Probable, "the network is down"},
	{syscall.ENETUNREACH, politeness.Probable, "the network is unreachable"},
	{syscall.EPERM, politeness.Probable, "the system does not permit connections"},
	{syscall.EACCES, politeness.Probable, "the system does not permit connections"},
	{syscall.EHOSTUNREACH, politeness.Possible, whyManyFail},
}

// whyManyFail is what is said of a machine where all hosts fail.
const whyManyFail = "no host answers"

// evidenceOf returns how likely it is that err is a fault of this machine, and which,
// and false if it is the host's in any case.
func evidenceOf(err error) (e politeness.Evidence, why string, ok bool) {
	var (
		dns   *net.DNSError // it holds the error of the system as text alone
		fault *NetworkFault
	)
	lookup := errors.As(err, &dns)
	for _, n := range errnos {
		if errors.Is(err, n.errno) || lookup && strings.Contains(dns.Err, n.errno.Error()) {
			if (n.errno == syscall.ENETUNREACH || n.errno == syscall.EADDRNOTAVAIL) && isFamily(err) {
				return politeness.Possible, whyManyFail, true
			}
			return n.evidence, n.why, true
		}
	}
	switch {
	case lookup && dns.IsNotFound:
		return 0, "", false
	case lookup && strings.Contains(dns.Err, syscall.ECONNREFUSED.Error()):
		return politeness.Probable, "the name server cannot be reached", true
	case errors.As(err, &fault):
		return politeness.Probable, fault.Why, true
	case lookup, errors.Is(err, syscall.ECONNREFUSED), isTimeout(err):
		return politeness.Possible, whyManyFail, true
	}
	return 0, "", false
}

// isTimeout reports whether err is of a time that was over.
func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// isFamily reports whether err is of an address of one version of IP, for which this
// machine has no route, while it has one for the other. To find a route sends nothing.
func isFamily(err error) bool {
	addr := addrOf(err)
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

// addrOf returns the address that err says could not be connected to, if it says so.
func addrOf(err error) netip.Addr {
	var op *net.OpError
	if !errors.As(err, &op) || op.Addr == nil {
		return netip.Addr{}
	}
	ap, _ := netip.ParseAddrPort(op.Addr.String())
	return ap.Addr().Unmap()
}
