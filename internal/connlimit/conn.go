package connlimit

import (
	"container/list"
	"context"
	"net"
	"sync"
	"time"
)

// A Conn is a connection that counts against the limits of its Limiter until it is
// closed. A nil *Conn stands for a connection without limits: Begin, EndRequest and Trust do
// nothing.
type Conn struct {
	net.Conn
	limiter       *Limiter
	networkPrefix string
	idleTimer     *time.Timer // closes an idle stranger
	closeOnce     sync.Once   // closes Conn
	closeErr      error       // returned by Conn.Close

	// These fields are guarded by limiter.mu.
	idleOrBusyList *list.List // where a stranger is in its network; nil: not a stranger, or closed
	element        *list.Element
	idleSeq        uint64 // the value of limiter.idles when it became idle
	activeRequests int    // being served now; HTTP/2 serves several at a time
	trusted        bool
}

// BeginRequest records that the server begins to serve a request of the connection. The caller
// must call EndRequest.
func (c *Conn) BeginRequest() {
	if c == nil {
		return
	}
	l := c.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	c.activeRequests++
	if c.idleOrBusyList == nil || c.activeRequests > 1 {
		return
	}
	c.idleTimer.Stop()
	n := l.networks[c.networkPrefix]
	n.idleConns.Remove(c.element)
	c.idleOrBusyList, c.element = &n.busyConns, n.busyConns.PushBack(c)
}

// EndRequest records that the server has served a request. A stranger then has UntrustedRequestTimeout to
// send the next one.
func (c *Conn) EndRequest() {
	if c == nil {
		return
	}
	l := c.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	c.activeRequests--
	if c.idleOrBusyList == nil || c.activeRequests > 0 {
		return
	}
	n := l.networks[c.networkPrefix]
	n.busyConns.Remove(c.element)
	l.enterIdleLocked(c, n)
	c.idleTimer.Reset(l.limits.UntrustedRequestTimeout)
}

// Trust exempts the connection, whose caller has authenticated, from the limits of
// strangers. While Limits.MaxTrusted connections are trusted, the connection keeps the
// limits of strangers.
func (c *Conn) Trust() {
	if c == nil {
		return
	}
	l := c.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.idleOrBusyList == nil || l.trustedCount >= l.limits.MaxTrusted {
		return
	}
	l.removeUntrustedConnLocked(c)
	c.trusted = true
	l.trustedCount++
}

// Close closes the connection. Further calls return the result of the first.
func (c *Conn) Close() error {
	c.closeOnce.Do(func() {
		l := c.limiter
		l.mu.Lock()
		l.removeUntrustedConnLocked(c)
		if c.trusted {
			c.trusted = false
			l.trustedCount--
		}
		l.mu.Unlock()
		c.closeErr = c.Conn.Close()
	})
	return c.closeErr
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

// WithConn returns a context from which ConnFromContext returns the *Conn, if c is one or wraps one
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

// ConnFromContext returns the connection of a context made by WithConn, or nil.
func ConnFromContext(ctx context.Context) *Conn {
	c, _ := ctx.Value(contextKey{}).(*Conn)
	return c
}
