package httpfetch

import (
	"net"
	"sync/atomic"

	"github.com/decorum-crawler/decorum/crawler"
)

// A leaseCheckedConn asks right before each write whether the lease of the visit still
// runs: a process that was stopped, or a machine that slept, does not know for how long
// when it wakes up in the midst of sending.
type leaseCheckedConn struct {
	net.Conn
	ticket atomic.Pointer[crawler.Ticket] // of the visit that uses the connection; nil: none
}

// Write is part of net.Conn.
func (c *leaseCheckedConn) Write(b []byte) (int, error) {
	if t := c.ticket.Load(); t != nil {
		if err := t.CheckLease(); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(b)
}

// leaseCheckedConnOf returns the leaseCheckedConn below c. It returns nil if there is none, and
// over HTTP/2, where one connection may carry several visits.
func leaseCheckedConnOf(c net.Conn) *leaseCheckedConn {
	for c != nil && !isHTTP2Conn(c) {
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

// enableLeaseCheck has writes to the connection of p ask the ticket of p, until
// disableLeaseCheck.
func (p *roundTrip) enableLeaseCheck() {
	if g := leaseCheckedConnOf(p.conn); g != nil {
		g.ticket.Store(&p.ticket)
	}
}

// disableLeaseCheck ends what enableLeaseCheck began: a connection that is kept open belongs to
// no visit.
func (p *roundTrip) disableLeaseCheck() {
	if g := leaseCheckedConnOf(p.conn); g != nil {
		g.ticket.CompareAndSwap(&p.ticket, nil)
	}
}
