package frontier_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

func TestIsSortLink(t *testing.T) {
	for _, tt := range []struct {
		link string // on the page with the same path
		want bool
	}{
		{"/pub/?C=N;O=D", true},
		{"/pub/?C=M&O=A", true},
		{"/pub/?N=D", true},
		{"/cgit/?s=idle", true},
		{"/gitweb/?o=age", true},
		{"/hg/?sort=-lastchange", true},
		{"/hg/?&sort=name&", true},
		{"/forum?sort=Newest", true},
		{"/shop/shoes?sort=pd.name&order=DESC", true},
		{"/shop/shoes?product_list_order=price&product_list_dir=asc", true},
		{"/shop/shoes?orderby=price-desc", true},
		{"/table?Sort_By=name:asc,date&dir=descending", true},
		// Pages that nothing else may lead to.
		{"/shop/shoes?sort=price&page=2", false},
		{"/shop/shoes?page=2;sort=price", false},
		{"/shop/shoes?sort=price&color=red", false},
		{"/pub/?C=N;O=D;P=*.iso", false},
		// Other meanings of the names.
		{"/files?dir=photos", false},
		{"/files?dir=asc/photos", false},
		{"/account?order=1017", false},
		{"/account?order=A17", false},
		{"/?s=wool", false},
		{"/?C=1", false},
		{"/?C=NM", false},
		{"/?O=x", false},
		{"/?c=N", false},
		{"/?sort=https://other.example/", false},
		{"/?sort=" + strings.Repeat("name,", 20), false},
		{"/birds?order=Passeriformes", false},
		{"/wines?sort=Pinot+noir", false},
		{"/?sort=name2", false},
		{"/?sort=---", false},
		{"/?sort=", false},
		{"/?sort", false},
		{"/?", false},
		{"/?&", false},
		{"/C=N;O=D", false},
		{"/", false},
	} {
		link := mustURL(t, "http://a.test"+tt.link)
		page, _, _ := strings.Cut(link.String(), "?")
		for _, page := range []string{page, page + "?page=2"} {
			if got := frontier.IsSortLink(page, link); got != tt.want {
				t.Errorf("%s on %s: %v, want %v", link, page, got, tt.want)
			}
		}
		// Another page may be the only one that leads to the list.
		for _, page := range []string{"", "http://a.test", page + "x", "http://b.test" + tt.link} {
			if frontier.IsSortLink(page, link) {
				t.Errorf("%s on %q is a sort link", link, page)
			}
		}
	}
}

// discoverAs discovers entries that are like e and have these URLs, each found on the page without the query. It
// returns how many were new.
func discoverAs(t *testing.T, f *frontier.Frontier, e storage.Entry, urls ...string) int {
	t.Helper()
	entries := make([]storage.Entry, len(urls))
	for i, u := range urls {
		entries[i] = e
		entries[i].URL = mustURL(t, u)
		entries[i].Referrer, _, _ = strings.Cut(u, "?")
	}
	added, err := f.Discover(t.Context(), entries...)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

// TestSortLinkAndFeedLimits: sort links of a host, and the feeds that its pages announce, are limited, and
// each counts once however often it is found. What else has their form is queued beyond the limits.
func TestSortLinkAndFeedLimits(t *testing.T) {
	link := storage.Entry{Source: storage.SourceLink}
	feed := storage.Entry{Source: storage.SourceFeed, CallbackData: []byte(frontier.AnnouncedFeed)}
	part := storage.Entry{Source: storage.SourceFeed, CallbackData: []byte(frontier.FeedPart)}
	moved := feed
	moved.Redirects = 1
	for _, tt := range []struct {
		name   string
		form   string // of the URLs
		entry  storage.Entry
		reason frontier.RefusalReason
		exempt []storage.Entry
	}{
		{"sort links", "http://a.test/%c/?C=N;O=D", link, frontier.TooManySortLinks, []storage.Entry{
			{Source: storage.SourceSeed}, {Source: storage.SourceSitemap}, {Source: storage.SourceRedirect},
			{Source: storage.SourceLink, Request: &storage.NonGETRequest{Method: "POST"}}}},
		{"feeds", "http://a.test/%c/feed/", feed, frontier.TooManyFeeds, []storage.Entry{
			{Source: storage.SourceSeed}, {Source: storage.SourceSitemap}, {Source: storage.SourceFeed}, part, moved}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			urls := func(from, to rune) (list []string) {
				for c := from; c <= to; c++ {
					list = append(list, fmt.Sprintf(tt.form, c))
				}
				return list
			}
			store := memory.New(memory.Config{})
			cfg := frontier.Config{Scope: frontier.NewScope(frontier.ScopeConfig{Mode: frontier.AnyScope,
				MaxSortLinksPerHost: 3, MaxFeedsPerHost: 3}, nil)}
			f := frontier.New(store, cfg)
			for range 3 {
				if discoverAs(t, f, tt.entry, urls('a', 'b')...); f.RefusalsByReason()[tt.reason] > 0 {
					t.Fatal("a URL within the limit is refused")
				}
			}
			// c is within the limit; d and e, which is found twice, are beyond it.
			if n := discoverAs(t, f, tt.entry, append(urls('a', 'e'), urls('e', 'e')...)...); n != 1 {
				t.Errorf("%d more were added, want 1", n)
			}
			if n := f.RefusalsByReason()[tt.reason]; n != 3 {
				t.Errorf("%d refusals for %s, want 3", n, tt.reason)
			}
			if n := discoverAs(t, f, tt.entry, "http://b.test/a/?C=N;O=D", "https://c.test/a/?C=N;O=D"); n != 2 {
				t.Errorf("%d of other hosts were added, want 2", n)
			}
			if n := discoverAs(t, f, link, "http://a.test/p?sort=price&page=2", "http://a.test/feed/a"); n != 2 {
				t.Errorf("%d other links were added, want 2", n)
			}
			for i, e := range tt.exempt {
				if n := discoverAs(t, f, e, urls('f'+rune(3*i), 'h'+rune(3*i))...); n != 3 {
					t.Errorf("%d of %+v were added, want 3", n, e)
				}
			}
			// A restart counts from 0, and URLs that are known do not count.
			f = frontier.New(store, cfg)
			if n := discoverAs(t, f, tt.entry, append(urls('a', 'c'), urls('A', 'Z')...)...); n != 3 {
				t.Errorf("after a restart %d were added, want 3", n)
			}
			cfg.Scope = frontier.NewScope(frontier.ScopeConfig{Mode: frontier.AnyScope,
				MaxSortLinksPerHost: -1, MaxFeedsPerHost: -1}, nil)
			if n := discoverAs(t, frontier.New(store, cfg), tt.entry, urls('A', 'Z')...); n != 23 {
				t.Errorf("without a limit %d more were added, want 23", n)
			}
		})
	}
}
