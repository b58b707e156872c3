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

// NetConn returns the connection inside c, as tls.Conn.NetConn does.
func (c *leaseCheckedConn) NetConn() net.Conn { return c.Conn }

// connInside returns the connection of type T that c is or wraps, and the zero T if there is none.
func connInside[T net.Conn](c net.Conn) (found T) {
	for {
		if found, ok := c.(T); ok {
			return found
		}
		wrapper, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return found
		}
		c = wrapper.NetConn()
	}
}

// enableLeaseCheck makes each write to the connection of p check whether p may still send, until
// disableLeaseCheck. Over HTTP/2 it does nothing, because a connection may carry several visits.
func (p *roundTrip) enableLeaseCheck() {
	if isHTTP2Conn(p.conn) {
		return
	}
	if g := connInside[*leaseCheckedConn](p.conn); g != nil {
		g.user.Store(p)
	}
}

// disableLeaseCheck undoes enableLeaseCheck: a kept-open connection belongs to no visit.
func (p *roundTrip) disableLeaseCheck() {
	if g := connInside[*leaseCheckedConn](p.conn); g != nil {
		g.user.CompareAndSwap(p, nil)
	}
}
