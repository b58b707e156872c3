package httpfetch

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A ticketFetcher calls onFetch with the ticket of each visit during the visit.
type ticketFetcher struct{ onFetch func(crawler.Ticket) }

func (v ticketFetcher) Fetch(_ context.Context, t crawler.Ticket) (*decorum.Response, error) {
	v.onFetch(t)
	now := time.Now()
	return &decorum.Response{URL: t.URL(), Status: 404, Start: now, End: now}, nil
}

// TestLeaseConn: a connection refuses to write for a visit whose request is canceled or whose lease
// has expired, whatever wraps the connection. It writes anything while it is idle.
func TestLeaseConn(t *testing.T) {
	agent, err := robots.NewAgent("testbot")
	if err != nil {
		t.Fatal(err)
	}
	u, err := decorum.ParseURL("http://a.test/")
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New(memory.Config{})
	c := &crawler.Crawler{
		Frontier: frontier.New(store, frontier.Config{}), Gate: gate.New(gate.Config{Agent: agent}, store),
		Policy: politeness.Policy{Delay: time.Millisecond}, Limiter: politeness.NewLimiter(politeness.LimiterConfig{}),
	}
	var trips []*roundTrip
	c.Fetcher = ticketFetcher{onFetch: func(ticket crawler.Ticket) {
		for _, wrap := range []func(net.Conn) net.Conn{
			func(c net.Conn) net.Conn { return c },
			func(c net.Conn) net.Conn { return &recordedConn{Conn: c} },
			func(c net.Conn) net.Conn { return tls.Client(c, &tls.Config{ServerName: "a.test"}) },
			func(c net.Conn) net.Conn {
				return &recordedConn{Conn: tls.Client(c, &tls.Config{ServerName: "a.test"})}
			},
		} {
			p := &roundTrip{ticket: ticket, conn: wrap(&leaseCheckedConn{Conn: discardConn{}}), ctx: t.Context()}
			p.enableLeaseCheck()
			if err := writeLeaseConn(p); err != nil {
				t.Errorf("while its lease runs, a visit cannot write: %v", err)
			}
			canceled := &roundTrip{ticket: ticket, conn: p.conn}
			canceled.ctx, canceled.cancelRequest = context.WithCancelCause(t.Context())
			canceled.enableLeaseCheck()
			canceled.cancelRequest(errConnBroken)
			if err := writeLeaseConn(canceled); err != errConnBroken {
				t.Errorf("writing for a request that was canceled: %v, want %v", err, errConnBroken)
			}
			canceled.disableLeaseCheck()
			p.enableLeaseCheck()
			trips = append(trips, p)
		}
	}}
	if _, err := c.Frontier.Discover(t.Context(), storage.Entry{URL: u, Source: storage.SourceSeed}); err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(trips) < 4 {
		t.Fatalf("%d round trips", len(trips))
	}
	for _, p := range trips {
		if err := writeLeaseConn(p); err == nil {
			t.Error("a visit whose lease has expired can write")
		}
		p.disableLeaseCheck()
		if err := writeLeaseConn(p); err != nil {
			t.Errorf("over an idle connection: %v", err)
		}
	}
}

// TestTakeWireBytes: a visit takes the bytes of its connection, and those of the one that was opened for it if
// another visit's connection was free first; through a proxy, where that one may belong to other hosts, not.
func TestTakeWireBytes(t *testing.T) {
	for _, tt := range []struct {
		viaProxy, isSame, isUnused bool
		sent, received             int64
	}{
		{sent: 11, received: 22}, {isSame: true, sent: 1, received: 2}, {isUnused: true, sent: 10, received: 20},
		{viaProxy: true, sent: 1, received: 2}, {viaProxy: true, isUnused: true},
	} {
		used, dialed := &leaseCheckedConn{Conn: discardConn{}}, &leaseCheckedConn{Conn: discardConn{}}
		used.sent.Store(1)
		used.received.Store(2)
		dialed.sent.Store(10)
		dialed.received.Store(20)
		p := &roundTrip{viaProxy: tt.viaProxy}
		if !tt.isUnused {
			p.conn = used
		}
		p.dialed.Store(dialed)
		if tt.isSame {
			p.dialed.Store(used)
		}
		p.takeWireBytes()
		if p.connUse != (crawler.ConnectionUse{WireBytesSent: tt.sent, WireBytesReceived: tt.received}) {
			t.Errorf("%+v: took %+v", tt, p.connUse)
		}
	}
}

// writeLeaseConn writes to the leaseCheckedConn inside p's connection.
func writeLeaseConn(p *roundTrip) error {
	_, err := connInside[*leaseCheckedConn](p.conn).Write([]byte("GET / HTTP/1.1\r\n"))
	return err
}

// A discardConn discards what is written.
type discardConn struct{ net.Conn }

func (discardConn) Write(b []byte) (int, error) { return len(b), nil }
