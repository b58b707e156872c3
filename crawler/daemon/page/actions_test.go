package page_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// TestForms sends each form as a browser without JavaScript does.
func TestForms(t *testing.T) {
	for _, tt := range []struct {
		path     string
		form     url.Values
		call     string // the call that the daemon receives; empty: none
		wantPath string // of the page after the form
		wantText string
	}{
		{"/projects/books/pause", url.Values{"from": {"a form"}, "back": {"/projects/books?span=day"}}, "pause books",
			"/projects/books?span=day", "books pauses"},
		{"/projects/books/start", url.Values{"from": {"a form"}, "back": {"https://evil.example/"}},
			"start books", "/", "books is started"},
		{"/projects/books/stop", url.Values{"from": {"a form"}, "back": {"//evil.example/"}},
			"stop books", "/", "books stops"},
		{"/projects/books/resume", url.Values{"from": {"a form"}, "back": {`/\evil.example/`}},
			"resume books", "/", "books continues"},
		{"/projects/books/explode", url.Values{"from": {"a form"}}, "", "/projects/books/explode", "explode"},
		{"/reload", nil, "reload", "/", "books: changed"},
		{"/projects/books/delete", url.Values{"name": {"books"}}, "delete books", "/", "books is deleted"},
		{"/projects/books/delete", url.Values{"name": {"other"}}, "", "/projects/books/delete", "not deleted"},
		{"/projects/books/file", url.Values{"file": {"project: books\r\nseeds: []\r\n"}},
			`put books "project: books\nseeds: []\n"`, "/projects/books", "uses its new file"},
		{"/brakes", url.Values{"host": {" shop.example "}, "kind": {"stop"}, "reason": {"asked"}, "back": {"/brakes"}},
			"brake shop.example", "/brakes", "The brake is on: shop.example"},
		{"/brakes", url.Values{"host": {"shop.example"}, "kind": {"slow"}, "delay": {"soon"}, "back": {"/brakes"}}, "",
			"/brakes", "must be a duration"},
		{"/brakes", url.Values{"host": {"shop.example"}, "for": {"-1h"}, "back": {"/brakes"}}, "",
			"/brakes", "must be a duration"},
		{"/brakes/lift", url.Values{"host": {"shop.example"}, "back": {"/brakes"}}, "lift shop.example",
			"/brakes", "The brake is off"},
	} {
		d := newFakeDaemon()
		b := openBrowser(t, d, operateToken)
		res := b.post(tt.path, tt.form)
		if got := strings.Join(d.calls, "; "); got != tt.call {
			t.Errorf("%s %v: the daemon was called with %q, want %q", tt.path, tt.form, got, tt.call)
		}
		if res.path != tt.wantPath || !strings.Contains(res.text, tt.wantText) {
			t.Errorf("%s %v: led to %s, which does not say %q", tt.path, tt.form, res.path, tt.wantText)
		}
		if second := b.get("/"); strings.Contains(second.text, "flash") {
			t.Errorf("%s: the message is shown twice", tt.path)
		}
	}
}

// The form for a brake sets a brake with the values that were typed, and the audit records it.
func TestBrakeForm(t *testing.T) {
	d := newFakeDaemon()
	b := openBrowser(t, d, operateToken)
	b.post("/brakes", url.Values{"host": {"shop.example"}, "kind": {"slow"}, "delay": {"90s"}, "domain": {"1"},
		"reason": {"they asked"}, "for": {"2d"}})
	if len(d.brakes) != 1 {
		t.Fatal("there is no brake")
	}
	got := d.brakes[0]
	if duration := got.Expires.Sub(got.Since); duration != 48*time.Hour {
		t.Errorf("it lasts %v", duration)
	}
	got.Since, got.Expires = time.Time{}, time.Time{}
	if want := (api.Brake{Host: "shop.example", WithSubdomains: true, Delay: api.Milliseconds(90 * time.Second),
		Reason: "they asked", By: "anna"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	a := b.get("/audit")
	if !strings.Contains(a.text, "they asked") || !strings.Contains(a.text, "anna") {
		t.Error("the audit does not show who set the brake, and why")
	}
}

// A refused file is shown again as it was typed, with the error.
func TestRefusedFile(t *testing.T) {
	d := newFakeDaemon()
	d.changeErr = api.InvalidInput("books.yaml:1:1: nonsense: unknown field\n  1 | nonsense: <1>\n    | ^")
	b := openBrowser(t, d, operateToken)
	for _, path := range []string{"/projects/books/file", "/new"} {
		a := b.post(path, url.Values{"name": {"books"}, "file": {"nonsense: <1>\n"}})
		if a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: status %d", path, a.status)
		}
		doc := a.document(t)
		if got := elements(doc, "textarea")[0].FirstChild.Data; got != "nonsense: <1>\n" {
			t.Errorf("%s: the file has become %q", path, got)
		}
		if pres := elements(doc, "pre"); len(pres) == 0 || !strings.HasSuffix(pres[0].FirstChild.Data, "\n    | ^") {
			t.Errorf("%s: the position of the error is not shown", path)
		}
	}
	d.changeErr = api.Conflict("it is being deleted")
	if a := b.post("/projects/books/start", url.Values{"back": {"/brakes"}}); a.status != http.StatusConflict ||
		!strings.Contains(a.text, "it is being deleted") || !strings.Contains(a.text, `href="/brakes"`) {
		t.Errorf("a refused action: status %d, %s", a.status, a.text)
	}
	if a := b.get("/audit"); !strings.Contains(a.text, "409") {
		t.Error("the audit does not say that it was refused")
	}
}

// The form for URLs queues each line, and keeps the text if some lines were refused.
func TestAddURLs(t *testing.T) {
	d := newFakeDaemon()
	b := openBrowser(t, d, operateToken)
	a := b.post("/projects/books/urls", url.Values{"urls": {"https://shop.example/1\r\n\r\n  " +
		"https://shop.example/2\r\n"}})
	if want := []string{"https://shop.example/1", "https://shop.example/2"}; !slices.Equal(d.urls, want) {
		t.Errorf("%q, want %q", d.urls, want)
	}
	if !strings.Contains(a.text, "2 queued") ||
		!strings.Contains(elements(a.document(t), "textarea")[0].FirstChild.Data, "shop.example/2") {
		t.Errorf("the result is not shown: %s", a.text)
	}
	if a := b.post("/projects/books/urls",
		url.Values{"urls": {strings.Repeat("x", 5<<20)}}); a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a form of 5 MiB: status %d", a.status)
	}
}

// The links of the table of hosts sort it and lead through its pages, and keep the search.
func TestHostList(t *testing.T) {
	d := newFakeDaemon()
	b := openBrowser(t, d, readToken)
	a := b.get("/projects/books?q=+shop+&state=held&sort=queued&order=desc&offset=100")
	if want := (api.HostQuery{Search: "shop", State: "held", Sort: "queued", Descending: true, Offset: 100,
		Limit: 50}); d.lastHostQuery != want {
		t.Errorf("the query is %+v, want %+v", d.lastHostQuery, want)
	}
	links := map[string]url.Values{}
	for _, link := range elements(a.document(t), "a") {
		if query, ok := strings.CutPrefix(attr(link, "href"), "?"); ok {
			query, _, _ = strings.Cut(query, "#")
			values, err := url.ParseQuery(query)
			if err != nil {
				t.Fatal(err)
			}
			links[textOf(link)] = values
		}
	}
	for name, want := range map[string]string{
		"Queued ↓":   "order=asc&q=+shop+&sort=queued&state=held",
		"Due":        "order=asc&q=+shop+&sort=due&state=held",
		"Errors":     "order=desc&q=+shop+&sort=failures&state=held",
		"Next →":     "offset=150&order=desc&q=+shop+&sort=queued&state=held",
		"← Previous": "offset=50&order=desc&q=+shop+&sort=queued&state=held",
	} {
		if got := links[name].Encode(); got != want {
			t.Errorf("%s leads to %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(a.text, "101–150 of 100,000") {
		t.Error("the range of the hosts is not shown")
	}
	for _, offset := range []string{"-5", "x", "99999999999999999999"} {
		if a := b.get("/projects/books?offset=" + offset); a.status != http.StatusOK || d.lastHostQuery.Offset != 0 {
			t.Errorf("offset %s: status %d, the query has %d", offset, a.status, d.lastHostQuery.Offset)
		}
	}
}
