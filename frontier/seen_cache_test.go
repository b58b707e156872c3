package frontier_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// TestRecentlyOffered: a URL that the store holds is remembered, whether it was new or not. A
// refused URL and a request other than GET are not, because they may be queued later.
func TestRecentlyOffered(t *testing.T) {
	store := memory.New(memory.Config{})
	cfg := frontier.Config{Scope: frontier.NewScope(frontier.ScopeConfig{Mode: frontier.AnyScope,
		MaxURLsPerHost: 2, MaxDepth: 3}, nil)}
	a, b, third, deep := mustURL(t, "http://a.test/a?sid=1"), mustURL(t, "http://a.test/b"),
		mustURL(t, "http://a.test/c"), mustURL(t, "http://b.test/")
	posted, hop := mustURL(t, "http://c.test/form"), mustURL(t, "http://d.test/robots.txt")
	for _, run := range []string{"new", "known"} {
		f := frontier.New(store, cfg)
		if f.WasRecentlyOffered(a) {
			t.Errorf("%s: a URL that was not offered is remembered", run)
		}
		for _, e := range []storage.Entry{
			{URL: a, Source: storage.SourceSeed}, {URL: b, Source: storage.SourceLink},
			{URL: third, Source: storage.SourceLink}, {URL: deep, Source: storage.SourceLink, Depth: 4},
			{URL: posted, Source: storage.SourceLink, Request: &storage.NonGETRequest{Method: "POST"}},
			{URL: hop, Source: storage.SourcePrerequisite, RobotsFor: b.Origin()},
		} {
			if _, err := f.Discover(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if !f.WasRecentlyOffered(a) || !f.WasRecentlyOffered(b) {
			t.Errorf("%s: a queued URL is not remembered", run)
		}
		if f.WasRecentlyOffered(third) || f.WasRecentlyOffered(deep) || f.WasRecentlyOffered(posted) ||
			f.WasRecentlyOffered(hop) {
			t.Errorf("%s: a URL that was not queued as a page is remembered", run)
		}
	}
}

// TestNoLongerRecentlyOffered: a link must be offered again if it would now be queued as another
// URL, because its origin's cleaning rules have changed or the origin has moved to https.
func TestNoLongerRecentlyOffered(t *testing.T) {
	session, moved, other := mustURL(t, "https://a.test/p?sid=1"), mustURL(t, "http://b.test/p"),
		mustURL(t, "http://b.test:8080/p")
	clean := func(u decorum.URL) decorum.URL { return u }
	f := frontier.New(memory.New(memory.Config{}), frontier.Config{CleanURL: func(u decorum.URL) decorum.URL {
		return clean(u)
	}})
	all := []decorum.URL{session, moved, other}
	for _, u := range all {
		discoverURLs(t, f, storage.SourceLink, u.String())
	}
	clean = func(u decorum.URL) decorum.URL {
		if u == session {
			u = mustURL(t, "https://a.test/p")
		}
		return u
	}
	for range 3 {
		if err := f.RecordHTTPSEvidence(t.Context(), mustURL(t, "http://b.test/"), true, false); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []int{1, 1, 0} {
		known := f.WasRecentlyOffered(all[i])
		if n := discoverURLs(t, f, storage.SourceLink, all[i].String()); n != want || known != (want == 0) {
			t.Errorf("%v: remembered: %t, and %d new URLs, want %d", all[i], known, n, want)
		}
	}
}

// TestFrontierIsSmall: before the first Discover, a Frontier takes hardly any memory. A daemon
// makes one to answer a query, and keeps one for each project.
func TestFrontierIsSmall(t *testing.T) {
	const many, maxBytes = 100, 16 << 10 // bytes of each
	var before, after runtime.MemStats
	store := memory.New(memory.Config{})
	runtime.ReadMemStats(&before)
	for range many {
		frontier.New(store, frontier.Config{})
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / many; each > maxBytes {
		t.Errorf("a Frontier takes %d bytes, want at most %d", each, maxBytes)
	}
}

// BenchmarkRecentlyOffered offers the links of a site's pages; all are remembered.
func BenchmarkRecentlyOffered(b *testing.B) {
	f := frontier.New(memory.New(memory.Config{}), frontier.Config{})
	links := make([]storage.Entry, 50)
	for i := range links {
		links[i] = storage.Entry{URL: mustURL(b, fmt.Sprintf("http://a.test/section/page-%d.html", i)),
			Source: storage.SourceLink}
	}
	if _, err := f.Discover(context.Background(), links...); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for i := range links {
			if !f.WasRecentlyOffered(links[i].URL) {
				b.Fatal(links[i].URL)
			}
		}
	}
}

// TestManyRecentlyOffered: if as many URLs are added as the cache can hold, it remembers most of
// them.
func TestManyRecentlyOffered(t *testing.T) {
	f := frontier.New(memory.New(memory.Config{}), frontier.Config{})
	u := func(i int) decorum.URL { return mustURL(t, fmt.Sprintf("http://a.test/%d", i)) }
	const many = 1 << 16
	for i := range many {
		if _, err := f.Discover(t.Context(), storage.Entry{URL: u(i), Source: storage.SourceLink}); err != nil {
			t.Fatal(err)
		}
	}
	known := 0
	for i := range many {
		if f.WasRecentlyOffered(u(i)) {
			known++
		}
	}
	if known < many*9/10 {
		t.Errorf("%d of %d URLs are remembered, want nearly all", known, many)
	}
}
