package crawler_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
)

// newTicket returns a ticket for the robots.txt of an origin of a.test.
func newTicket(t *testing.T, origin string) crawler.Ticket {
	t.Helper()
	clearance, permit, _ := newClearanceAndPermits(t, origin)
	ticket, err := crawler.NewTicket(clearance, permit)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

// A namedFetcher answers each visit with its name.
type namedFetcher string

func (n namedFetcher) Fetch(_ context.Context, t crawler.Ticket) (*decorum.Response, error) {
	return &decorum.Response{URL: t.URL(), Status: 200, Body: []byte(n)}, nil
}

func TestSchemeFetcher(t *testing.T) {
	f := crawler.MultiSchemeFetcher{"https": namedFetcher("web"), "ftp": namedFetcher("files")}
	for url, want := range map[string]string{"https://a.test/": "web", "ftp://a.test/": "files", "http://a.test/": ""} {
		res, err := f.Fetch(t.Context(), newTicket(t, url))
		if want == "" && !errors.Is(err, decorum.Invalid) || want != "" && (err != nil || string(res.Body) != want) {
			t.Errorf("%s: %v, %v; want %q", url, res, err, want)
		}
	}
	if _, err := f.Fetch(t.Context(), crawler.Ticket{}); !errors.Is(err, decorum.Unticketed) {
		t.Errorf("no ticket: %v, want Unticketed", err)
	}
}

// A trackingFetcher is a Fetcher that keeps resources for the handler.
type trackingFetcher struct {
	crawler.Fetcher
	mu         sync.Mutex
	unfinished map[decorum.URL]bool
}

func (k *trackingFetcher) Fetch(ctx context.Context, t crawler.Ticket) (*decorum.Response, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unfinished[t.URL()] = true
	return k.Fetcher.Fetch(ctx, t)
}

func (k *trackingFetcher) ReleaseVisitResources(t crawler.Ticket) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.unfinished, t.URL())
}

// TestSchemeFetcherFinishes: a fetcher behind a MultiSchemeFetcher learns that a visit is over;
// otherwise its resources would grow without limit.
func TestSchemeFetcherFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOneHostWeb(0)
		c := newDirectCrawl(t, web, newMemoryStore(), numberedSeeds(5, "a.test", "x")...)
		k := &trackingFetcher{Fetcher: c.Fetcher, unfinished: map[decorum.URL]bool{}}
		c.Fetcher = crawler.MultiSchemeFetcher{"http": k, "https": namedFetcher("finishes nothing")}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(web.Log()) != 6 || len(k.unfinished) > 0 {
			t.Errorf("after %d requests %d are kept", len(web.Log()), len(k.unfinished))
		}
	})
}

// TestNewFetchError: a request that was not made gets another Kind than one that was not answered.
func TestNewFetchError(t *testing.T) {
	ticket := newTicket(t, "https://a.test/")
	for cause, want := range map[error]decorum.ErrorKind{
		io.ErrUnexpectedEOF: decorum.Unreachable, ticket.Redeem("https://b.test/"): decorum.Unticketed,
		decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonAddressBusy}.Err(): decorum.NotDue,
		&decorum.Error{Kind: decorum.Forbidden}:                                             decorum.Forbidden,
	} {
		if err := crawler.NewFetchError(ticket, cause); !errors.Is(err, want) || !errors.Is(err, cause) {
			t.Errorf("%v: %v, want %v", cause, err, want)
		}
	}
}
