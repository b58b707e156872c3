package httpfetch_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/crawler/internal/tickettest"
	"github.com/decorum-crawler/decorum/politeness"
)

// robotsTicket returns a ticket for a robots.txt.
func robotsTicket(t *testing.T, url string) crawler.Ticket {
	t.Helper()
	return tickettest.New(t, tickettest.Config{URL: url, ForRobots: true})
}

// ticketWithLimits returns a ticket for a robots.txt with a permit from limits.
func ticketWithLimits(t *testing.T, limits *politeness.Limiter, url string) crawler.Ticket {
	t.Helper()
	return tickettest.New(t, tickettest.Config{URL: url, ForRobots: true, Limiter: limits})
}

// pageTicket returns a ticket for a page of an origin that has no robots.txt.
func pageTicket(t *testing.T, url string) crawler.Ticket {
	t.Helper()
	return tickettest.New(t, tickettest.Config{URL: url})
}

// fetchInVisit fetches with a ticket for cfg. The visit ends when Fetch returns, as in a crawl.
func fetchInVisit(t *testing.T, f *httpfetch.Fetcher, cfg tickettest.Config) (res *decorum.Response, err error) {
	t.Helper()
	tickettest.Use(t, cfg, func(ticket crawler.Ticket) { res, err = f.Fetch(t.Context(), ticket) })
	return res, err
}

// TestInvalidExtraHeader: a header that cannot be sent is the mistake of the caller, and no failure of the host.
func TestInvalidExtraHeader(t *testing.T) {
	t.Parallel()
	f := newFetcher(t, hostileConfig)
	_, err := f.FetchWithHeader(t.Context(), pageTicket(t, "http://site.test/"), http.Header{"X-A": {"a\r\nX-B: b"}})
	if !errors.Is(err, decorum.Invalid) || errors.Is(err, decorum.Unreachable) {
		t.Errorf("%v, want an error of kind Invalid", err)
	}
}
