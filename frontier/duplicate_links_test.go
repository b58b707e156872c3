package frontier_test

import (
	"slices"
	"testing"

	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// TestLinksOfDuplicateThatAreKnown: links of duplicates that the crawl knows already do not use up their limit.
func TestLinksOfDuplicateThatAreKnown(t *testing.T) {
	var refused []string
	f := frontier.New(memory.New(memory.Config{}), frontier.Config{
		OnRefused: func(e storage.Entry, _ error) { refused = append(refused, e.URL.PathAndQuery()) }})
	links := func(paths ...string) (entries []storage.Entry) {
		for _, p := range paths {
			entries = append(entries, storage.Entry{URL: mustURL(t, "http://a.test"+p), Source: storage.SourceLink, Depth: 1})
		}
		return entries
	}
	if n, err := f.Discover(t.Context(), links("/1", "/2", "/3")...); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	added, err := f.DiscoverLinksOfDuplicate(t.Context(), links("/1", "/4", "/2", "/3", "/5", "/6"), 2)
	if want := []string{"/6"}; added != 2 || err != nil || !slices.Equal(refused, want) {
		t.Errorf("%d links are queued and %q refused, %v; want 2 and %q", added, refused, err, want)
	}
}
