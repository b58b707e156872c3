package collyfetch

import (
	"net"
	"net/http"
	"sync/atomic"

	"github.com/decorum-crawler/decorum/crawler"
)

// A gated connection asks right before each write whether the lease of the visit still
// runs: a process that was stopped, or a machine that slept, does not know for how long
// when it wakes up in the midst of sending.
type gated struct {
	net.Conn
	ticket atomic.Pointer[crawler.Ticket] // nil: nobody's
}

// Write is part of net.Conn.
func (c *gated) Write(b []byte) (int, error) {
	if t := c.ticket.Load(); t != nil {
		if err := t.Lapsed(); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(b)
}

// gate makes all connections of t gated, below TLS.
func gate(t *http.Transport) {
	t.DialContext = wrapping(t.DialContext, func(c net.Conn) net.Conn { return &gated{Conn: c} })
}

// gateOf returns the gate of a connection, nil if it has none of its own: over HTTP/2
// it may carry several visits.
func gateOf(c net.Conn) *gated {
	for c != nil && !overHTTP2(c) {
		switch inner := c.(type) {
		case *gated:
			return inner
		case *tapped:
			c = inner.Conn
		case interface{ NetConn() net.Conn }:
			c = inner.NetConn()
		default:
			return nil
		}
	}
	return nil
}

// shut has the gate of the passage's connection ask for its ticket, until open.
func (p *passage) shut() {
	if g := gateOf(p.conn); g != nil {
		g.ticket.Store(&p.ticket)
	}
}

// open lets go of the ticket: a connection that is kept open belongs to nobody.
func (p *passage) open() {
	if g := gateOf(p.conn); g != nil {
		g.ticket.CompareAndSwap(&p.ticket, nil)
	}
}
