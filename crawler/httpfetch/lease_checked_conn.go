package httpfetch

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/decorum-crawler/decorum/crawler/httpfetch/internal/http1"
)

// A leaseCheckedConn checks right before each write whether the visit may still send: the request may be
// canceled, and the lease may expire, while a connection is opened or TLS is set up. It also counts the
// bytes that pass through it, which are encrypted if TLS is used.
type leaseCheckedConn struct {
	net.Conn
	user           atomic.Pointer[roundTrip] // the visit that uses the connection; nil: the connection is idle
	sent, received atomic.Int64              // bytes since the last takeWireBytes
}

// checkLeases makes the connections of dial leaseCheckedConns.
func checkLeases(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		checked := &leaseCheckedConn{Conn: c}
		if p, _ := ctx.Value(roundTripContextKey{}).(*roundTrip); p != nil {
			p.dialed.Store(checked)
		}
		return checked, nil
	}
}

// Read is part of net.Conn.
func (c *leaseCheckedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.received.Add(int64(n))
	return n, err
}

// Write is part of net.Conn. It writes nothing and returns the reason if the visit may not send. It
// counts the bytes before it sends them: the visit may be over before the write returns.
func (c *leaseCheckedConn) Write(b []byte) (int, error) {
	if p := c.user.Load(); p != nil {
		if err := p.ticket.CheckMaySend(p.ctx); err != nil {
			return 0, err
		}
	}
	c.sent.Add(int64(len(b)))
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n - len(b)))
	return n, err
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

// dialedConn returns the connection that was dialled, inside the one that a transport gives to a hook.
func dialedConn(c net.Conn) net.Conn {
	if inside, ok := c.(*http1.Conn); ok {
		return inside.NetConn()
	}
	return c
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

// takeWireBytes sets in p.connUse the bytes that the connection of p has carried since the visit before, and
// those of the connection that was opened for p, if p uses another one or none.
func (p *roundTrip) takeWireBytes() {
	p.takeWireBytesOf(connInside[*leaseCheckedConn](p.conn))
	if !p.viaProxy { // a connection to a proxy may carry requests to other hosts
		p.takeWireBytesOf(p.dialed.Load())
	}
}

// takeWireBytesOf moves the bytes of c, which may be nil, to p.connUse.
func (p *roundTrip) takeWireBytesOf(c *leaseCheckedConn) {
	if c != nil {
		// sent is negative if a write failed after another visit had taken the bytes that it announced.
		p.connUse.WireBytesSent += max(c.sent.Swap(0), 0)
		p.connUse.WireBytesReceived += c.received.Swap(0)
	}
}
