package crawler

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A partsFixture has what the parts of the pipeline need in tests: a store in memory, the frontier
// and the gate over it, and hosts that two crawls share.
type partsFixture struct {
	store    storage.Store
	frontier *frontier.Frontier
	gate     *gate.Gate
	limiter  *politeness.Limiter // of the crawl
	other    *politeness.Limiter // of another crawl that visits the same hosts
	log      *slog.Logger
}

func newPartsFixture(t *testing.T) *partsFixture {
	t.Helper()
	agent, err := robots.NewAgent("testbot")
	if err != nil {
		t.Fatal(err)
	}
	store, shared := memory.New(memory.Config{}), politeness.NewSharedHosts()
	limits := politeness.LimiterConfig{IPConcurrency: 1}
	return &partsFixture{
		store: store, frontier: frontier.New(store, frontier.Config{}),
		gate:    gate.New(gate.Config{Agent: agent}, store),
		limiter: shared.NewLimiter(limits), other: shared.NewLimiter(limits),
		log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

// discover queues URLs.
func (p *partsFixture) discover(t *testing.T, entries ...storage.Entry) {
	t.Helper()
	if _, err := p.frontier.Discover(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
}

// leaseNow returns up to max leases that the store hands out now, for a minute.
func (p *partsFixture) leaseNow(t *testing.T, max int) []storage.Lease {
	t.Helper()
	leases, _, err := p.store.Lease(t.Context(), time.Now(), time.Minute, max)
	if err != nil {
		t.Fatal(err)
	}
	return leases
}

// leaseOne returns the next lease that the store hands out now.
func (p *partsFixture) leaseOne(t *testing.T) storage.Lease {
	t.Helper()
	leases := p.leaseNow(t, 1)
	if len(leases) != 1 {
		t.Fatal("the store gives out no URL")
	}
	return leases[0]
}

// leaseURL queues a URL and leases it.
func (p *partsFixture) leaseURL(t *testing.T, text string) storage.Lease {
	t.Helper()
	p.discover(t, storage.Entry{URL: mustParseURL(t, text)})
	l := p.leaseOne(t)
	if l.URL.String() != text {
		t.Fatalf("leased is %s, want %s", l.URL, text)
	}
	return l
}

// ack acks a lease with an outcome.
func (p *partsFixture) ack(t *testing.T, l storage.Lease, r leaseOutcome) {
	t.Helper()
	if err := p.frontier.Ack(t.Context(), newAck(l, r)); err != nil {
		t.Fatal(err)
	}
}

// check returns the gate's clearance for a URL.
func (p *partsFixture) check(t *testing.T, u decorum.URL) gate.Clearance {
	t.Helper()
	cl, err := p.gate.Check(t.Context(), time.Now(), u)
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// learnRobots makes the gate learn the robots.txt of the origin of u, and returns the clearance for
// u.
func (p *partsFixture) learnRobots(t *testing.T, u decorum.URL, text string) gate.Clearance {
	t.Helper()
	res := &decorum.Response{URL: u.Origin().RobotsURL(), Status: http.StatusOK, Body: []byte(text),
		Header: http.Header{"Content-Type": {"text/plain"}}}
	if _, err := p.gate.RecordFetch(t.Context(), time.Now(), p.check(t, u), res, nil); err != nil {
		t.Fatal(err)
	}
	return p.check(t, u)
}

// newHostTable returns a hostTable without entries.
func (p *partsFixture) newHostTable() *hostTable {
	ms := &hostTable{hostTableConfig: hostTableConfig{
		policy: politeness.Policy{JitterFunc: func() float64 { return 0 }}, limiter: p.limiter, frontier: p.frontier,
		log: p.log, now: time.Now}}
	ms.crawlDelays.gate, ms.crawlDelays.notes = p.gate, p.store
	return ms
}

// requestPermit asks for the permit of a visit to a host. It returns false if the host or its
// address is busy.
func requestPermit(limiter *politeness.Limiter, host string) (politeness.Permit, bool) {
	permit, d := limiter.Reserve(time.Now(), host, politeness.PermitRequest{HostSlots: 1})
	return permit, d.Action == decorum.Proceed
}

// mustPermit is requestPermit for a host that is free.
func mustPermit(t *testing.T, limiter *politeness.Limiter, host string) politeness.Permit {
	t.Helper()
	permit, ok := requestPermit(limiter, host)
	if !ok {
		t.Fatalf("there is no permit for %s", host)
	}
	return permit
}

// visitOf returns the visit of a lease that was answered with a status just now.
func visitOf(l storage.Lease, cl gate.Clearance, status int, header http.Header, body string) *Visit {
	now := time.Now()
	return &Visit{Lease: l, Kind: visitKindOf(l, cl), Clearance: cl, Start: now, End: now,
		Response: &decorum.Response{URL: cl.URL(), Status: status, Header: header,
			Body: []byte(body), Start: now, End: now}}
}

// originInfo returns what the store knows of the origin of a URL.
func (p *partsFixture) originInfo(t *testing.T, u decorum.URL) storage.OriginInfo {
	t.Helper()
	info, _, err := p.store.(storage.Inspector).Origin(context.Background(), u.Origin())
	if err != nil {
		t.Fatal(err)
	}
	return info
}
