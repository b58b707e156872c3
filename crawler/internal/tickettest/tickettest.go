// Package tickettest has tickets for the tests of fetchers. A crawl makes them, for a visit on
// demand, and holds the lease of each as long as the test needs its ticket.
//
// Begin reading at Use. New starts a goroutine, which ends with the test.
package tickettest

import (
	"context"
	"log/slog"
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

// A Config says what a ticket is for.
type Config struct {
	URL       string              // of a page of an origin that has no robots.txt
	ForRobots bool                // the ticket is for the robots.txt of that origin instead
	Limiter   *politeness.Limiter // that gives the permit; nil: one that knows no host
}

// New returns a ticket whose visit goes on until the test ends.
func New(t testing.TB, cfg Config) crawler.Ticket {
	t.Helper()
	tickets, ended := make(chan crawler.Ticket, 1), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		use(ctx, t, cfg, func(ticket crawler.Ticket) {
			tickets <- ticket
			<-ctx.Done()
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case ticket := <-tickets:
		return ticket
	case <-ended:
		t.Fatalf("there is no ticket for %+v", cfg)
		return crawler.Ticket{}
	}
}

// Use calls f with a ticket, whose visit ends when f returns.
func Use(t testing.TB, cfg Config, f func(crawler.Ticket)) {
	t.Helper()
	use(context.Background(), t, cfg, f)
}

func use(ctx context.Context, t testing.TB, cfg Config, f func(crawler.Ticket)) {
	t.Helper()
	u, err := decorum.ParseURL(cfg.URL)
	if err != nil {
		t.Error(err)
		return
	}
	agent, err := robots.NewAgent("testbot")
	if err != nil {
		t.Error(err)
		return
	}
	if cfg.Limiter == nil {
		cfg.Limiter = politeness.NewLimiter(politeness.LimiterConfig{})
	}
	d, err := crawler.NewOnDemandCrawl(&crawler.Crawler{
		Gate: gate.New(gate.Config{Agent: agent}, memory.New(memory.Config{})), Limiter: cfg.Limiter,
		Policy: politeness.Policy{Delay: politeness.NoDelay}, Fetcher: &capturingFetcher{cfg.ForRobots, f},
		Settings: crawler.Settings{FollowedLinkKinds: crawler.FollowedLinkKinds{NoFeeds: true}}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Error(err)
		return
	}
	if cfg.ForRobots {
		_, err = d.FetchRobots(ctx, u.Origin())
	} else {
		_, err = d.Visit(ctx, u)
	}
	if err != nil && ctx.Err() == nil {
		t.Errorf("visit of %v: %v", u, err)
	}
}

// A capturingFetcher hands on the ticket of one visit. Nothing is there for any.
type capturingFetcher struct {
	forRobots bool // of a robots.txt, else of what comes after it
	use       func(crawler.Ticket)
}

func (f *capturingFetcher) Fetch(_ context.Context, ticket crawler.Ticket) (*decorum.Response, error) {
	if ticket.Kind().IsRobots() == f.forRobots {
		f.use(ticket)
	}
	now := time.Now()
	return &decorum.Response{URL: ticket.URL(), Status: http.StatusNotFound, Header: http.Header{}, Start: now, End: now}, nil
}
