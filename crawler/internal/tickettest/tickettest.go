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

// A Config describes a ticket.
type Config struct {
	URL       string              // of a page; its origin has no robots.txt
	ForRobots bool                // the ticket is for the robots.txt of URL's origin instead
	Limiter   *politeness.Limiter // gives the permit; nil: a new Limiter
}

// New returns a ticket. Its visit lasts until the test ends.
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
	// The visit may end early, with an error that use has reported.
	select {
	case ticket := <-tickets:
		return ticket
	case <-ended:
		t.Fatalf("cannot make a ticket for %+v", cfg)
		return crawler.Ticket{}
	}
}

// Use calls f with a ticket, whose visit ends when f returns.
func Use(t testing.TB, cfg Config, f func(crawler.Ticket)) {
	t.Helper()
	use(context.Background(), t, cfg, f)
}

// use is Use for a visit that ends, at the latest, with ctx.
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
	// A crawl whose Fetcher passes on the ticket makes it as any crawl does.
	d, err := crawler.NewOnDemandCrawl(&crawler.Crawler{
		Gate: gate.New(gate.Config{Agent: agent}, memory.New(memory.Config{})), Limiter: cfg.Limiter,
		Policy: politeness.Policy{Delay: politeness.NoDelay}, Fetcher: &capturingFetcher{cfg.ForRobots, f},
		Settings: crawler.Settings{FollowedLinkKinds: crawler.FollowedLinkKinds{NoFeeds: true}},
		Log:      slog.New(slog.DiscardHandler),
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

// A capturingFetcher passes the ticket of one visit to use. It answers every visit with 404.
type capturingFetcher struct {
	forRobots bool // pass the ticket for robots.txt, else the one that follows it
	use       func(crawler.Ticket)
}

// Fetch implements crawler.Fetcher.
func (f *capturingFetcher) Fetch(_ context.Context, ticket crawler.Ticket) (*decorum.Response, error) {
	if ticket.Kind().IsRobots() == f.forRobots {
		f.use(ticket)
	}
	now := time.Now()
	return &decorum.Response{URL: ticket.URL(), Status: http.StatusNotFound,
		Header: http.Header{}, Start: now, End: now}, nil
}
