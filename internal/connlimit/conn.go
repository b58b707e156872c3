package connlimit

import (
	"container/list"
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

// A Conn is a connection that counts against the limits of its Limiter until it is
// closed. A nil *Conn stands for a connection without limits: Begin, End and Trust do
// nothing.
type Conn struct {
	net.Conn
	limiter *Limiter
	network string
	timer   *time.Timer // closes an idle stranger
	once    sync.Once   // closes Conn
	err     error       // returned by Conn.Close

	// These fields are guarded by limiter.mu.
	in        *list.List // where a stranger is in its network; nil: not a stranger, or closed
	element   *list.Element
	idleSince uint64 // the value of limiter.idles when it became idle
	requests  int    // being served now; HTTP/2 serves several at a time
	trusted   bool
}

// Begin records that the server begins to serve a request of the connection. The caller
// must call End.
func (c *Conn) Begin() {
	if c == nil {
		return
	}
	l := c.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	c.requests++
	if c.in == nil || c.requests > 1 {
		return
	}
	c.timer.Stop()
	n := l.networks[c.network]
	n.idle.Remove(c.element)
	c.in, c.element = &n.busy, n.busy.PushBack(c)
}

// End records that the server has served a request. A stranger then has StrangerTime to
// send the next one.
func (c *Conn) End() {
	if c == nil {
		return
	}
	l := c.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	c.requests--
	if c.in == nil || c.requests > 0 {
		return
	}
	n := l.networks[c.network]
	n.busy.Remove(c.element)
	l.enterIdleLocked(c, n)
	c.timer.Reset(l.limits.StrangerTime)
}

// Trust exempts the connection, whose caller has authenticated, from the limits of
// strangers. While Limits.Trusted connections are trusted, the connection keeps the
// limits of strangers.
func (c *Conn) Trust() {
	if c == nil {
		return
	}
	l := c.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.in == nil || l.trusted >= l.limits.Trusted {
		return
	}
	l.removeLocked(c)
	c.trusted = true
	l.trusted++
}

// Close closes the connection. Further calls return the result of the first.
func (c *Conn) Close() error {
	c.once.Do(func() {
		l := c.limiter
		l.mu.Lock()
		l.removeLocked(c)
		if c.trusted {
			c.trusted = false
			l.trusted--
		}
		l.mu.Unlock()
		c.err = c.Conn.Close()
	})
	return c.err
}

// abort closes a stranger's connection to make room for another. It resets TCP
// connections: an orderly close would leave a socket in TIME_WAIT for each connection
// of a flood.
func (c *Conn) abort() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // if it fails, Close closes the connection in order
	}
	_ = c.Close()
}

type contextKey struct{}

// WithConn returns a context from which Of returns the *Conn, if c is one or wraps one
// as a *tls.Conn does. It suits http.Server.ConnContext.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	if wrapper, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = wrapper.NetConn()
	}
	if limited, ok := c.(*Conn); ok {
		return context.WithValue(ctx, contextKey{}, limited)
	}
	return ctx
}

// Of returns the connection of a context made by WithConn, or nil.
func Of(ctx context.Context) *Conn {
	c, _ := ctx.Value(contextKey{}).(*Conn)
	return c
}

// Network returns the network that one party is likely to control: an IPv4 address, or
// the /64 of an IPv6 address. remote is ADDRESS:PORT; Network returns other strings
// unchanged.
func Network(remote string) string {
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
