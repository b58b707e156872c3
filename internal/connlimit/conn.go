package connlimit

import (
	"container/list"
	"context"
	"net"
	"sync"
	"time"
)

// A Conn is a connection that counts against the limits of its Limiter until it is closed. A nil
// *Conn stands for a connection without limits: BeginRequest, EndRequest and Trust do nothing.
type Conn struct {
	net.Conn
	limiter       *Limiter
	networkPrefix string      // NetworkPrefix of the remote address
	idleTimer     *time.Timer // closes the connection if it is untrusted and idle
	closeOnce     sync.Once   // closes net.Conn and sets closeErr
	closeErr      error       // result of Close

	// limiter.mu guards the following fields. idleOrBusyList is the list of the network that
	// contains the connection; nil if the connection is trusted or closed.
	idleOrBusyList *list.List
	element        *list.Element // place in idleOrBusyList
	idleSeq        uint64        // limiter.lastIdleSeq when it last became idle
	activeRequests int           // requests being served; HTTP/2 serves several at a time
	trusted        bool
}

// BeginRequest records that the server begins to serve a request of the connection. The caller must
// call EndRequest afterwards.
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

// EndRequest records that the server has served a request. An untrusted connection then has
// Limits.UntrustedRequestTimeout to send the next one.
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

// Trust exempts the connection, whose client has authenticated, from the limits of untrusted
// connections. If Limits.MaxTrusted connections are trusted already, the connection stays
// untrusted.
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

// abort closes an untrusted connection in favour of another. It resets TCP connections: an orderly
// close would leave a socket in TIME_WAIT for each connection of a flood.
func (c *Conn) abort() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // if it fails, Close closes in the orderly way
	}
	_ = c.Close()
}

// contextKey is the context key of a *Conn.
type contextKey struct{}

// WithConn returns a context from which ConnFromContext returns c, if c is a *Conn or wraps one as
// a *tls.Conn does; otherwise it returns ctx. It can be used as http.Server.ConnContext.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	if wrapper, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = wrapper.NetConn()
	}
	if limited, ok := c.(*Conn); ok {
		return context.WithValue(ctx, contextKey{}, limited)
	}
	return ctx
}

// ConnFromContext returns the connection of a context made by WithConn, nil if there is none.
func ConnFromContext(ctx context.Context) *Conn {
	c, _ := ctx.Value(contextKey{}).(*Conn)
	return c
}
