package connlimit

import (
	"cmp"
	"container/list"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Limits are limits on open connections. The zero value has the defaults.
type Limits struct {
	MaxTrusted             int // trusted connections; 0: 4096. Connections beyond it keep the limits of strangers.
	MaxUntrusted           int // connections of strangers; 0: 1024
	MaxUntrustedPerNetwork int // connections of strangers of one network (see NetworkPrefix); 0: 64
	// UntrustedRequestTimeout is how long a stranger may take to send a request, counted from the
	// connect or from the end of its last request; 0: 10 s. The TLS handshake and the
	// request's header are part of it.
	UntrustedRequestTimeout time.Duration
}

// withDefaults returns l with a value for each limit that is not set.
func (l Limits) withDefaults() Limits {
	return Limits{
		MaxTrusted: cmp.Or(l.MaxTrusted, 4096), MaxUntrusted: cmp.Or(l.MaxUntrusted, 1024),
		MaxUntrustedPerNetwork: cmp.Or(l.MaxUntrustedPerNetwork, 64), UntrustedRequestTimeout: cmp.Or(l.UntrustedRequestTimeout, 10*time.Second),
	}
}

// A Limiter enforces limits on the connections of one or more listeners. Its methods
// may be called concurrently.
type Limiter struct {
	limits Limits

	mu             sync.Mutex // guards the fields below, and those of each Conn and network
	networks       map[string]*subnetConns
	untrustedCount int    // connections in networks
	trustedCount   int    // open connections that are trusted
	lastIdleSeq    uint64 // counts how often a connection became idle
}

// A subnetConns holds the connections of the strangers of one network.
type subnetConns struct {
	idleConns list.List // of *Conn that serve no request; the one that is idle longest is first
	busyConns list.List // of *Conn that serve a request; the one that began first is first
}

func (n *subnetConns) len() int { return n.idleConns.Len() + n.busyConns.Len() }

// connToEvict returns the connection to close first: an idle one if possible. The network
// must hold a connection.
func (n *subnetConns) connToEvict() *Conn { return n.connToEvictPreferringOthers(nil) }

// connToEvictPreferringOthers is oldest, but spares the idle connection c if there is another connection:
// requests that are sent slowly must not keep a new connection out.
func (n *subnetConns) connToEvictPreferringOthers(c *Conn) *Conn {
	e := n.idleConns.Front()
	if e != nil && e.Value.(*Conn) == c {
		if e = e.Next(); e == nil && n.busyConns.Len() == 0 {
			return c
		}
	}
	if e == nil {
		e = n.busyConns.Front()
	}
	return e.Value.(*Conn)
}

// New returns a Limiter without connections.
func New(l Limits) *Limiter {
	return &Limiter{limits: l.withDefaults(), networks: map[string]*subnetConns{}}
}

// Listener returns a listener that accepts the connections of inner under the limits.
// Each connection that it returns is a *Conn.
func (l *Limiter) Listener(inner net.Listener) net.Listener {
	return &listener{inner, l, true}
}

// UnlimitedListener returns a listener that accepts the connections of inner without limits.
// As Listener does, it closes strangers when the process has no descriptor left.
func (l *Limiter) UnlimitedListener(inner net.Listener) net.Listener {
	return &listener{inner, l, false}
}

type listener struct {
	net.Listener
	limiter   *Limiter
	isLimited bool // its connections count against the limits
}

// Accept returns the next connection. When the process has no descriptor left, Accept
// closes strangers and tries again; when there are none, it returns the error, which
// net/http takes as temporary.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		switch {
		case err == nil && l.isLimited:
			return l.limiter.addConnAndEvictExcess(c), nil
		case err == nil || !isResourceExhausted(err) || !l.limiter.EvictUntrustedConn():
			return c, err
		}
	}
}

// isResourceExhausted reports whether an accept failed because descriptors or memory ran out.
func isResourceExhausted(err error) bool {
	exhausted := []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}
	return slices.ContainsFunc(exhausted, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// addConnAndEvictExcess counts a connection that was just accepted, and closes the connections that are
// then beyond the limits.
func (l *Limiter) addConnAndEvictExcess(inner net.Conn) *Conn {
	c := &Conn{Conn: inner, limiter: l, networkPrefix: NetworkPrefix(inner.RemoteAddr().String())}
	l.mu.Lock()
	n := l.networks[c.networkPrefix]
	if n == nil {
		n = &subnetConns{}
		l.networks[c.networkPrefix] = n
	}
	l.untrustedCount++
	l.enterIdleLocked(c, n)
	// The timer is set under mu, so that it is there when the connection is found.
	c.idleTimer = time.AfterFunc(l.limits.UntrustedRequestTimeout, func() { _ = c.Close() })
	var victims []*Conn
	if n.len() > l.limits.MaxUntrustedPerNetwork {
		victims = append(victims, l.removeUntrustedConnLocked(n.connToEvictPreferringOthers(c)))
	}
	if l.untrustedCount > l.limits.MaxUntrusted {
		victims = append(victims, l.removeUntrustedConnLocked(l.largestNetworkLocked().connToEvictPreferringOthers(c)))
	}
	l.mu.Unlock()
	for _, v := range victims {
		v.abort()
	}
	return c
}

// EvictUntrustedConn closes one stranger, as a new connection beyond the limit would, and reports
// whether there was a stranger.
func (l *Limiter) EvictUntrustedConn() bool {
	l.mu.Lock()
	if l.untrustedCount == 0 {
		l.mu.Unlock()
		return false
	}
	victim := l.removeUntrustedConnLocked(l.largestNetworkLocked().connToEvict())
	l.mu.Unlock()
	victim.abort()
	return true
}

// largestNetworkLocked returns the network that holds most connections, so that a flood from
// few networks closes its own; of several, the one that has been idle longest. There
// are at most as many networks as strangers. The caller holds mu, and there is a
// stranger.
func (l *Limiter) largestNetworkLocked() *subnetConns {
	var largest *subnetConns
	for _, n := range l.networks {
		if largest == nil || n.len() > largest.len() ||
			n.len() == largest.len() && n.connToEvict().idleSeq < largest.connToEvict().idleSeq {
			largest = n
		}
	}
	return largest
}

// enterIdleLocked puts a stranger at the end of its network's idle connections. The
// caller holds mu.
func (l *Limiter) enterIdleLocked(c *Conn, n *subnetConns) {
	l.lastIdleSeq++
	c.idleSeq, c.idleOrBusyList = l.lastIdleSeq, &n.idleConns
	c.element = n.idleConns.PushBack(c)
}

// removeUntrustedConnLocked takes a stranger out of its network. It does nothing if it is not in
// one. The caller holds mu.
func (l *Limiter) removeUntrustedConnLocked(c *Conn) *Conn {
	if c.idleOrBusyList == nil {
		return c
	}
	c.idleOrBusyList.Remove(c.element)
	c.idleOrBusyList, c.element = nil, nil
	c.idleTimer.Stop()
	l.untrustedCount--
	if n := l.networks[c.networkPrefix]; n.len() == 0 {
		delete(l.networks, c.networkPrefix)
	}
	return c
}

// NetworkPrefix returns the network that one party is likely to control: an IPv4 address, or
// the /64 of an IPv6 address. remote is ADDRESS:PORT; NetworkPrefix returns other strings
// unchanged.
func NetworkPrefix(remote string) string {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	a := ap.Addr().Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits)
	return p.String()
}
