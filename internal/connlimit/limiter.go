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

// Limits holds limits on open connections. A field of 0 means its default.
type Limits struct {
	// MaxTrusted is how many connections can be trusted; 0: 4096. Connections beyond it stay
	// untrusted.
	MaxTrusted             int
	MaxUntrusted           int // untrusted connections in total; 0: 1024
	MaxUntrustedPerNetwork int // untrusted connections of one NetworkPrefix; 0: 64
	// UntrustedRequestTimeout is how long an untrusted connection may take to send a request,
	// including the TLS handshake and the request's header, counted from the connect or from the
	// end of its last request; 0: 10 s.
	UntrustedRequestTimeout time.Duration
}

// withDefaults returns l with each limit of 0 set to its default.
func (l Limits) withDefaults() Limits {
	return Limits{
		MaxTrusted: cmp.Or(l.MaxTrusted, 4096), MaxUntrusted: cmp.Or(l.MaxUntrusted, 1024),
		MaxUntrustedPerNetwork:  cmp.Or(l.MaxUntrustedPerNetwork, 64),
		UntrustedRequestTimeout: cmp.Or(l.UntrustedRequestTimeout, 10*time.Second),
	}
}

// A Limiter enforces Limits on the connections of one or more listeners. Its methods may be called
// concurrently.
type Limiter struct {
	limits Limits

	// mu guards networks, untrustedCount, trustedCount and lastIdleSeq, the lists of each
	// subnetConns, and the fields of each Conn from idleOrBusyList on.
	mu             sync.Mutex
	networks       map[string]*subnetConns // untrusted connections, by NetworkPrefix
	untrustedCount int                     // connections in networks
	trustedCount   int                     // open trusted connections
	lastIdleSeq    uint64                  // counts how often a connection became idle
}

// A subnetConns holds the untrusted connections of one network.
type subnetConns struct {
	idleConns list.List // of *Conn that serve no request, the longest idle first
	busyConns list.List // of *Conn that serve a request, the first to begin first
}

// len returns the number of connections.
func (n *subnetConns) len() int { return n.idleConns.Len() + n.busyConns.Len() }

// connToEvict returns the connection to close first: an idle one if possible. n must not be empty.
func (n *subnetConns) connToEvict() *Conn { return n.connToEvictPreferringOthers(nil) }

// connToEvictPreferringOthers does what connToEvict does, but returns the idle connection c only if
// there is no other: connections that send their requests slowly must not keep a new one out.
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

// Listener returns a listener that accepts the connections of inner under the limits. Its
// connections are of type *Conn.
func (l *Limiter) Listener(inner net.Listener) net.Listener {
	return &listener{inner, l, true}
}

// UnlimitedListener returns a listener that accepts the connections of inner without limits. Like
// Listener, it closes untrusted connections of the Limiter when the process has no file descriptor
// left.
func (l *Limiter) UnlimitedListener(inner net.Listener) net.Listener {
	return &listener{inner, l, false}
}

// A listener implements Listener and UnlimitedListener.
type listener struct {
	net.Listener
	limiter   *Limiter
	isLimited bool // its connections count against the limits
}

// Accept returns the next connection. If the process has no file descriptor left, Accept closes an
// untrusted connection and tries again. Without one to close, it returns the error, which
// net/http treats as temporary.
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

// isResourceExhausted reports whether an accept failed because file descriptors or memory ran out.
func isResourceExhausted(err error) bool {
	exhausted := []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}
	return slices.ContainsFunc(exhausted, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// addConnAndEvictExcess adds a connection that was just accepted, and closes the connections that
// are then beyond the limits.
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
	// Set the timer under mu, so that every connection in a list has one.
	c.idleTimer = time.AfterFunc(l.limits.UntrustedRequestTimeout, func() { _ = c.Close() })
	// Remove the connections beyond a limit under mu, and close them after mu is released.
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

// EvictUntrustedConn closes one untrusted connection, as a new connection beyond the limit would,
// and reports whether there was one.
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

// largestNetworkLocked returns the network with most connections, so that a flood from a few
// networks closes its own connections. Of several such networks it returns the one with the longest
// idle connection. There must be an untrusted connection. The caller holds l.mu.
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

// enterIdleLocked appends an untrusted connection to its network's idle connections. The caller
// holds l.mu.
func (l *Limiter) enterIdleLocked(c *Conn, n *subnetConns) {
	l.lastIdleSeq++
	c.idleSeq, c.idleOrBusyList = l.lastIdleSeq, &n.idleConns
	c.element = n.idleConns.PushBack(c)
}

// removeUntrustedConnLocked removes c from its network and returns c. It does nothing if c is in no
// network. The caller holds l.mu.
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

// NetworkPrefix returns the network that one party is likely to control: an IPv4 address as /32, or
// the /64 of an IPv6 address. remote is ADDRESS:PORT; other strings are returned unchanged.
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
