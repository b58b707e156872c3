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
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/robots/gate"
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

// TestProductTokens: the crawl has one name: a User-Agent whose product token is not that of the Gate's
// Agent is an error of Validate or, if a Fetcher hides it, is not sent.
func TestProductTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newOneHostWeb(0)
		other, err := httpfetch.New(httpfetch.Config{UserAgent: "otherbot/1.0 (+https://bot.test/)", Transport: web})
		if err != nil {
			t.Fatal(err)
		}
		hidden := &trackingFetcher{Fetcher: other, unfinished: map[decorum.URL]bool{}}
		for name, tt := range map[string]struct {
			set     func(*crawler.Crawler)
			isValid bool
		}{
			"same":      {func(*crawler.Crawler) {}, true},
			"no token":  {func(c *crawler.Crawler) { c.Settings.ProductToken = "" }, true},
			"case":      {func(c *crawler.Crawler) { c.Settings.ProductToken = "TestBot" }, true},
			"settings":  {func(c *crawler.Crawler) { c.Settings.ProductToken = "otherbot" }, false},
			"fetcher":   {func(c *crawler.Crawler) { c.Fetcher = other }, false},
			"no agent":  {func(c *crawler.Crawler) { c.Gate = gate.New(gate.Config{}, c.Frontier.Store()) }, false},
			"by scheme": {func(c *crawler.Crawler) { c.Fetcher = crawler.MultiSchemeFetcher{"http": other} }, false},
			"hidden":    {func(c *crawler.Crawler) { c.Fetcher = hidden }, true},
		} {
			c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
			tt.set(c)
			if err := c.Validate(); (err == nil) != tt.isValid || err != nil && !errors.Is(err, decorum.Invalid) {
				t.Errorf("%s: Validate returned %v, want valid %v", name, err, tt.isValid)
			}
		}
		// The run ends, before robots.txt is requested or after it, and keeps the URLs.
		store := newMemoryStore()
		for sent, name := range []string{"another name", "its name", "another name", "its name"} {
			c := newCrawl(t, web, store, "http://a.test/", "http://a.test/0", "http://a.test/1")
			c.Settings.MaxPages = int64(sent)
			if name == "another name" {
				c.Fetcher = hidden
			}
			requests := len(web.Log())
			err := c.Run(t.Context())
			switch requests = len(web.Log()) - requests; {
			case name == "another name" && (requests > 0 || !errors.Is(err, decorum.Unticketed)):
				t.Errorf("%d requests were sent under another name; Run returned %v", requests, err)
			case name == "its name" && requests != 2: // robots.txt and a page, then two pages
				t.Errorf("%d requests were sent; Run returned %v", requests, err)
			}
		}
	})
}
