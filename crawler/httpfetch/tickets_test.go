package httpfetch_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// robotsTicket returns a ticket for a robots.txt, got as the crawler gets it.
func robotsTicket(t *testing.T, url string) crawler.Ticket {
	t.Helper()
	return ticketWithLimits(t, politeness.NewLimiter(politeness.LimiterConfig{}), url)
}

func ticketWithLimits(t *testing.T, limits *politeness.Limiter, url string) crawler.Ticket {
	t.Helper()
	return newTicket(t, limits, checkRobots(t, newGate(t), url))
}

// pageTicket returns a ticket for a page of an origin that has no robots.txt.
func pageTicket(t testing.TB, url string) crawler.Ticket {
	t.Helper()
	gate := newGate(t)
	clearance := checkRobots(t, gate, url)
	if clearance.IsForRobots() {
		none := &decorum.Response{URL: clearance.URL(), Status: http.StatusNotFound, Header: http.Header{}}
		if _, err := gate.RecordFetch(t.Context(), time.Now(), clearance, none, nil); err != nil {
			t.Fatal(err)
		}
		clearance = checkRobots(t, gate, url)
	}
	return newTicket(t, politeness.NewLimiter(politeness.LimiterConfig{}), clearance)
}

func newGate(t testing.TB) *gate.Gate {
	t.Helper()
	agent, err := robots.NewAgent("testbot")
	if err != nil {
		t.Fatal(err)
	}
	return gate.New(gate.Config{Agent: agent}, memory.New(memory.Config{}))
}

func checkRobots(t testing.TB, gate *gate.Gate, url string) gate.Clearance {
	t.Helper()
	u, err := decorum.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	clearance, err := gate.Check(t.Context(), time.Now(), u)
	if err != nil {
		t.Fatal(err)
	}
	return clearance
}

func newTicket(t testing.TB, limits *politeness.Limiter, clearance gate.Clearance) crawler.Ticket {
	t.Helper()
	now := time.Now()
	permit, d := limits.Reserve(now, clearance.URL().Origin().Host(), politeness.PermitRequest{NotBefore: now})
	if d.Action != decorum.Proceed {
		t.Fatal(d.Err())
	}
	ticket, err := crawler.NewTicket(clearance, permit)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}
