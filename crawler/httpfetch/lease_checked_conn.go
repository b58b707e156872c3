package httpfetch

import (
	"net"
	"sync/atomic"
)

// A leaseCheckedConn checks right before each write whether the visit may still send: net/http
// writes in a separate goroutine, and may be about to write when the request is canceled.
type leaseCheckedConn struct {
	net.Conn
	user atomic.Pointer[roundTrip] // the visit that uses the connection; nil: the connection is idle
}

// Write is part of net.Conn. It writes nothing and returns the reason if the visit may not send.
func (c *leaseCheckedConn) Write(b []byte) (int, error) {
	if p := c.user.Load(); p != nil {
		if err := p.ticket.CheckMaySend(p.ctx); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(b)
}

// leaseCheckedConnOf returns the leaseCheckedConn inside c, nil if c has none.
func leaseCheckedConnOf(c net.Conn) *leaseCheckedConn {
	for c != nil {
		switch inner := c.(type) {
		case *leaseCheckedConn:
			return inner
		case *recordedConn:
			c = inner.Conn
		case interface{ NetConn() net.Conn }:
			c = inner.NetConn()
		default:
			return nil
		}
	}
	return nil
}

// keptConnOf returns the keptConn inside c. It returns nil if c has none, as a connection to a proxy
// for plain http.
func keptConnOf(c net.Conn) *keptConn {
	if g := leaseCheckedConnOf(c); g != nil {
		kept, _ := g.Conn.(*keptConn)
		return kept
	}
	return nil
}

// enableLeaseCheck makes each write to the connection of p check whether p may still send, until
// disableLeaseCheck. Over HTTP/2 it does nothing, because a connection may carry several visits.
func (p *roundTrip) enableLeaseCheck() {
	if isHTTP2Conn(p.conn) {
		return
	}
	if g := leaseCheckedConnOf(p.conn); g != nil {
		g.user.Store(p)
	}
}

// disableLeaseCheck undoes enableLeaseCheck: a kept-open connection belongs to no visit.
func (p *roundTrip) disableLeaseCheck() {
	if g := leaseCheckedConnOf(p.conn); g != nil {
		g.user.CompareAndSwap(p, nil)
	}
}
