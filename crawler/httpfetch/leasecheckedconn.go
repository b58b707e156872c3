package httpfetch

import (
	"net"
	"net/http"
	"sync/atomic"

	"github.com/decorum-crawler/decorum/crawler"
)

// A leaseCheckedConn asks right before each write whether the lease of the visit still
// runs: a process that was stopped, or a machine that slept, does not know for how long
// when it wakes up in the midst of sending.
type leaseCheckedConn struct {
	net.Conn
	ticket atomic.Pointer[crawler.Ticket] // nil: nobody's
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

// wrapConnsWithLeaseCheck makes all connections of t gated, below TLS.
func wrapConnsWithLeaseCheck(t *http.Transport) {
	t.DialContext = wrapDialedConns(t.DialContext, func(c net.Conn) net.Conn { return &leaseCheckedConn{Conn: c} })
}

// leaseCheckedConnOf returns the gate of a connection, nil if it has none of its own: over HTTP/2
// it may carry several visits.
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

// enableLeaseCheck has the gate of the passage's connection ask for its ticket, until open.
func (p *roundTrip) enableLeaseCheck() {
	if g := leaseCheckedConnOf(p.conn); g != nil {
		g.ticket.Store(&p.ticket)
	}
}

// disableLeaseCheck lets go of the ticket: a connection that is kept open belongs to nobody.
func (p *roundTrip) disableLeaseCheck() {
	if g := leaseCheckedConnOf(p.conn); g != nil {
		g.ticket.CompareAndSwap(&p.ticket, nil)
	}
}
