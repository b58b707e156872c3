package crawler_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/politeness"
)

// ticketFor returns a ticket for the robots.txt of an origin of a.test.
func ticketFor(t *testing.T, origin string) crawler.Ticket {
	t.Helper()
	clearance, permit, _ := proofs(t, origin)
	ticket, err := crawler.NewTicket(clearance, permit)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

// A named fetcher answers each visit with its name.
type named string

func (n named) Fetch(_ context.Context, t crawler.Ticket) (*decorum.Response, error) {
	return &decorum.Response{URL: t.URL(), Status: 200, Body: []byte(n)}, nil
}

func TestByScheme(t *testing.T) {
	f := crawler.ByScheme{"https": named("web"), "ftp": named("files")}
	for url, want := range map[string]string{"https://a.test/": "web", "ftp://a.test/": "files", "http://a.test/": ""} {
		res, err := f.Fetch(t.Context(), ticketFor(t, url))
		if want == "" && !errors.Is(err, decorum.Invalid) || want != "" && (err != nil || string(res.Body) != want) {
			t.Errorf("%s: %v, %v; want %q", url, res, err, want)
		}
	}
	if _, err := f.Fetch(t.Context(), crawler.Ticket{}); !errors.Is(err, decorum.Unticketed) {
		t.Errorf("no ticket: %v, want Unticketed", err)
	}
}

// What kept a request from being made is told from what kept it from being
// answered.
func TestNoAnswer(t *testing.T) {
	ticket := ticketFor(t, "https://a.test/")
	for cause, want := range map[error]decorum.Kind{
		io.ErrUnexpectedEOF: decorum.Unreachable, ticket.Use("https://b.test/"): decorum.Unticketed,
		&politeness.Busy{Until: time.Now()}: decorum.NotDue, &decorum.Error{Kind: decorum.Forbidden}: decorum.Forbidden,
	} {
		if err := crawler.NoAnswer(ticket, cause); !errors.Is(err, want) || !errors.Is(err, cause) {
			t.Errorf("%v: %v, want %v", cause, err, want)
		}
	}
}
