package collyfetch

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
	"github.com/decorum-crawler/decorum/storage"
)

// A visitor shows the ticket of each visit while it lasts.
type visitor struct{ during func(crawler.Ticket) }

func (v visitor) Fetch(_ context.Context, t crawler.Ticket) (*decorum.Response, error) {
	v.during(t)
	now := time.Now()
	return &decorum.Response{URL: t.URL(), Status: 404, Start: now, End: now}, nil
}

// TestGate: over a connection nothing is written for a visit whose lease does not run,
// whatever lies between the two; and anything once the connection is nobody's.
func TestGate(t *testing.T) {
	agent, err := robots.NewAgent("testbot")
	if err != nil {
		t.Fatal(err)
	}
	u, err := decorum.ParseURL("http://a.test/")
	if err != nil {
		t.Fatal(err)
	}
	store := storage.NewMemory(storage.Config{})
	c := &crawler.Crawler{
		Frontier: frontier.New(store, frontier.Config{}), Gate: robots.NewGate(robots.GateConfig{Agent: agent}, store),
		Policy: politeness.Policy{Delay: time.Millisecond}, Limits: politeness.NewLimits(politeness.LimitsConfig{}),
	}
	var passages []*passage
	c.Fetcher = visitor{during: func(ticket crawler.Ticket) {
		for _, around := range []func(net.Conn) net.Conn{
			func(c net.Conn) net.Conn { return c },
			func(c net.Conn) net.Conn { return &tapped{Conn: c} },
			func(c net.Conn) net.Conn { return tls.Client(c, &tls.Config{ServerName: "a.test"}) },
			func(c net.Conn) net.Conn { return &tapped{Conn: tls.Client(c, &tls.Config{ServerName: "a.test"})} },
		} {
			p := &passage{ticket: ticket, conn: around(&gated{Conn: sink{}})}
			p.shut()
			if err := write(p); err != nil {
				t.Errorf("while its lease runs, a visit cannot write: %v", err)
			}
			passages = append(passages, p)
		}
	}}
	if _, err := c.Frontier.Discover(t.Context(), storage.Entry{URL: u, Source: storage.Seed}); err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(passages) < 4 {
		t.Fatalf("%d passages", len(passages))
	}
	for _, p := range passages {
		if err := write(p); err == nil {
			t.Error("a visit writes whose lease does not run any more")
		}
		p.open()
		if err := write(p); err != nil {
			t.Errorf("over a connection that is nobody's: %v", err)
		}
	}
}

// write writes to the connection below all that is around it.
func write(p *passage) error {
	_, err := gateOf(p.conn).Write([]byte("GET / HTTP/1.1\r\n"))
	return err
}

// A sink takes what is written.
type sink struct{ net.Conn }

func (sink) Write(b []byte) (int, error) { return len(b), nil }
