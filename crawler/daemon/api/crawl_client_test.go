package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// collect returns the values of a stream, and its error.
func collect[T any](values iter.Seq2[*T, error]) (all []*T, err error) {
	for v, err := range values {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

// newCrawlClient returns a client of one project of a fake daemon.
func newCrawlClient(t *testing.T, d *fakeDaemon, token string) Inspector {
	t.Helper()
	server := httptest.NewServer(newServer(t, d))
	t.Cleanup(server.Close)
	return (&Client{Server: server.URL, Token: token, HTTP: server.Client()}).Crawl("books")
}

// The Inspector of a client returns the answers of the daemon's own Inspector.
func TestCrawlClient(t *testing.T) {
	d := &fakeDaemon{fillsFields: true}
	got, want, ctx := newCrawlClient(t, d, operateToken), fakeInspector{d}, t.Context()
	for what, answer := range map[string]func(Inspector) (any, error){
		"report":      func(i Inspector) (any, error) { return FullReport(ctx, i.Report, ReportQuery{}) },
		"explanation": func(i Inspector) (any, error) { return i.ExplainURL(ctx, "http://a.example/") },
		"stats":       func(i Inspector) (any, error) { return i.FrontierStats(ctx) },
		"URLs":        func(i Inspector) (any, error) { return collect(i.FrontierURLs(ctx, FrontierURLQuery{})) },
		"ledger":      func(i Inspector) (any, error) { return collect(i.LedgerRecords(ctx, LedgerQuery{})) },
	} {
		g, err := answer(got)
		w, err2 := answer(want)
		gotText, err3 := json.MarshalIndent(g, "", " ")
		wantText, err4 := json.MarshalIndent(w, "", " ")
		if err := errors.Join(err, err2, err3, err4); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if diff := cmp.Diff(string(wantText), string(gotText)); diff != "" || len(wantText) < 100 {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	before := len(d.recordedCalls())
	if _, err := collect(got.FrontierURLs(ctx,
		FrontierURLQuery{Host: "a.example", Origin: "http://a.example", State: "parked", Limit: 7})); err != nil {
		t.Error(err)
	}
	if _, err := collect(got.LedgerRecords(ctx, LedgerQuery{URL: "http://a.example/", Host: "a.example"})); err != nil {
		t.Error(err)
	}
	if calls, want := d.recordedCalls()[before:], []string{"frontierURLs a.example http://a.example parked",
		"ledger http://a.example/ a.example"}; !slices.Equal(calls, want) {
		t.Errorf("the daemon received the calls %q, want %q", calls, want)
	}
}

// Only the role operate gets the data that callbacks attached to a URL, and the body of its request.
func TestFrontierURLsHideSecrets(t *testing.T) {
	for token, hasSecrets := range map[string]bool{operateToken: true, readToken: false} {
		all, err := collect(newCrawlClient(t, &fakeDaemon{fillsFields: true},
			token).FrontierURLs(t.Context(), FrontierURLQuery{}))
		if err != nil || len(all) != 1 || (all[0].CallbackData != nil) != hasSecrets ||
			(all[0].RequestBody != nil) != hasSecrets || all[0].URL == "" {
			t.Errorf("with %s: %+v, %v", token, all, err)
		}
	}
}

// An error before the first value is answered as a problem. A later error breaks the answer off, so
// that no client takes a part for the whole.
func TestStreamErrors(t *testing.T) {
	streams := map[string]func(Inspector) error{
		"report": func(i Inspector) error { return errorOf(FullReport(t.Context(), i.Report, ReportQuery{})) },
		"URLs":   func(i Inspector) error { return errorOf(collect(i.FrontierURLs(t.Context(), FrontierURLQuery{}))) },
		"ledger": func(i Inspector) error { return errorOf(collect(i.LedgerRecords(t.Context(), LedgerQuery{}))) },
	}
	for what, read := range streams {
		var p *Problem
		if err := read(newCrawlClient(t, &fakeDaemon{fillsFields: true, streamErr: Conflict("not now")},
			readToken)); !errors.As(err, &p) || p.Detail != "not now" {
			t.Errorf("%s, of little: %v; want the problem", what, err)
		}
		many := &fakeDaemon{fillsFields: true, streamErr: Conflict("not now"), streamLength: 5000}
		if err := read(newCrawlClient(t, many, readToken)); err == nil || errors.As(err, &p) && p.Detail != "not now" ||
			!strings.Contains(err.Error(), "breaks off") {
			t.Errorf("%s, of much: %v; want an answer that breaks off", what, err)
		}
		whole := &fakeDaemon{fillsFields: true, streamLength: 5000}
		if err := read(newCrawlClient(t, whole, readToken)); err != nil {
			t.Errorf("%s, whole: %v", what, err)
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }

// AddURLs sends a long list in several calls and sums their results. URLs that were added before an
// error are counted.
func TestCrawlClientAddsURLs(t *testing.T) {
	d := &fakeDaemon{}
	lines := func(n int, end error) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for i := range n {
				if !yield(fmt.Sprintf("http://a.example/%01000d", i), nil) {
					return
				}
			}
			if end != nil {
				yield("", end)
			}
		}
	}
	const many = 2 * maxAddBodyBytes / 1000
	if r, err := newCrawlClient(t, d, operateToken).AddURLs(t.Context(), lines(many, nil)); err != nil ||
		r.Added != many || len(d.urls) != many {
		t.Errorf("%+v, %v; the daemon took %d, want %d", r, err, len(d.urls), many)
	}
	end := errors.New("no more")
	if r, err := newCrawlClient(t, d, operateToken).AddURLs(t.Context(), lines(3, end)); !errors.Is(err, end) ||
		r.Added != 3 {
		t.Errorf("%+v, %v; want three, and the error", r, err)
	}
	d = &fakeDaemon{onURL: func(url string) error {
		if strings.HasSuffix(url, "5") {
			return Conflict("enough")
		}
		return nil
	}}
	var p *Problem
	if r, err := newCrawlClient(t, d, operateToken).AddURLs(t.Context(), lines(many, nil)); !errors.As(err, &p) ||
		r.Added != 5 {
		t.Errorf("%+v, %v; want five, and the problem", r, err)
	}
	total := AddURLsResult{}
	for range 2 {
		total.add(&AddURLsResult{Refused: 3,
			Refusals: []RefusalSummary{{URLCount: 1, Rule: "a"}, {URLCount: 2, Rule: "b"}}})
	}
	if diff := cmp.Diff(AddURLsResult{Refused: 6,
		Refusals: []RefusalSummary{{URLCount: 4, Rule: "b"}, {URLCount: 2, Rule: "a"}}}, total); diff != "" {
		t.Errorf("the sum (-want +got):\n%s", diff)
	}
}

// The server of a crawl in the foreground has only the calls that an Inspector answers, and /healthz.
func TestCrawlServer(t *testing.T) {
	server := httptest.NewServer(crawlServerWithToken(NewCrawlServer(fakeInspector{&fakeDaemon{fillsFields: true}},
		slog.New(slog.DiscardHandler))))
	t.Cleanup(server.Close)
	c := &Client{Server: server.URL, Token: operateToken, HTTP: server.Client()}
	if all, err := collect(c.Crawl(CrawlName).LedgerRecords(t.Context(), LedgerQuery{})); err != nil ||
		len(all) != 1 || all[0].Request == nil {
		t.Errorf("%+v, %v", all, err)
	}
	if r, err := c.Crawl(CrawlName).AddURLs(t.Context(), func(yield func(string, error) bool) {
		yield("http://a.example/", nil)
	}); err != nil || r.Added != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	for what, err := range map[string]error{
		"projects": errorOf(c.Projects(t.Context())), "start": c.ControlProject(t.Context(), CrawlName, ActionStart),
		"another project": errorOf(c.Crawl("books").FrontierStats(t.Context())),
	} {
		var p *Problem
		if !errors.As(err, &p) || p.Status != 404 || !strings.Contains(p.Detail, "a crawl in the foreground") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// crawlServerWithToken gives a server the key of the tests' token.
func crawlServerWithToken(s *Server) *Server {
	s.keys.keys = []APIKey{APIKeyFromToken("operator", RoleOperate, operateToken)}
	return s
}

// AddURLs counts the URLs of the call that is in progress when its context ends.
func TestCrawlClientCountsAfterSignal(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d := &fakeDaemon{onURL: func(string) error { cancel(); return nil }}
	// is not sent
	line := fmt.Sprintf("{\"url\": \"http://a.example/\", \"context\": %q}", strings.Repeat("x", 2*maxLineBytes))
	r, err := newCrawlClient(t, d, operateToken).AddURLs(ctx, func(yield func(string, error) bool) {
		for range 2 * maxAddBodyBytes / len(`{"url":"http://a.example/"}`) {
			if ctx.Err() != nil {
				yield("", context.Cause(ctx))
				return
			}
			if !yield(line, nil) {
				return
			}
			line = `{"url": "http://a.example/"}`
		}
	})
	if !errors.Is(err, context.Canceled) || r.Added == 0 || r.InvalidLines > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A stuckWriter is a connection whose reader takes nothing, so that a write blocks until its deadline.
type stuckWriter struct {
	http.ResponseWriter
	isWriting chan struct{} // closed by the first write
	deadlines chan time.Time
}

func (w *stuckWriter) SetWriteDeadline(at time.Time) error {
	if !at.IsZero() && !at.After(time.Now()) {
		close(w.deadlines)
	}
	return nil
}

func (w *stuckWriter) Write([]byte) (int, error) {
	close(w.isWriting)
	<-w.deadlines
	return 0, os.ErrDeadlineExceeded
}

// The end of the server ends an answer whose reader takes nothing.
func TestStopEndsStuckStream(t *testing.T) {
	s := newServer(t, &fakeDaemon{fillsFields: true, streamLength: 1000})
	w := &stuckWriter{ResponseWriter: httptest.NewRecorder(), isWriting: make(chan struct{}),
		deadlines: make(chan time.Time)}
	ended := make(chan any)
	go func() {
		defer func() { ended <- recover() }()
		r := httptest.NewRequest(http.MethodGet, "/api/v1/projects/books/frontier/urls", nil)
		r.Header.Set("Authorization", "Bearer "+readToken)
		s.ServeHTTP(w, r)
	}()
	<-w.isWriting
	s.eventStreams.stopAll()
	if p := <-ended; p != http.ErrAbortHandler {
		t.Errorf("it ended with %v", p)
	}
}
