package crawler_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A timedURL is one request of a crawl: its URL, and when it was made.
type timedURL struct {
	after time.Duration // since the crawl began
	url   string
}

// crawlDemo crawls the demo web in virtual time with random numbers from seed. It returns the
// requests by time, and by URL where times are equal.
func crawlDemo(t *testing.T, workers int, seed uint64) (order []timedURL) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.DemoWeb()
		c := newCrawl(t, web, memory.New(memory.Config{}))
		var roots []decorum.URL
		for _, s := range web.CrawlSettings.Seeds {
			u, err := decorum.ParseURL(s)
			if err != nil {
				t.Fatal(err)
			}
			roots = append(roots, u)
		}
		scope := frontier.NewScope(frontier.ScopeConfig{MaxDepth: web.CrawlSettings.MaxDepth, MaxURLsPerPattern: 40},
			roots)
		c.Frontier = frontier.New(memory.New(memory.Config{}), frontier.Config{Budget: c.Limiter, Scope: scope})
		c.Policy.JitterFunc, c.Policy.JitterSeed, c.Settings.Workers = nil, seed, workers
		addSeeds(t, c, web.CrawlSettings.Seeds...)
		began := time.Now()
		if err := c.Run(t.Context()); err != nil && !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
			t.Fatal(err)
		}
		for _, x := range web.Log() {
			order = append(order, timedURL{x.Start.Sub(began), x.URL})
		}
	})
	slices.SortFunc(order, func(a, b timedURL) int {
		return cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.url, b.url))
	})
	return order
}

// urlsByOrigin returns the URLs of the requests by origin.
func urlsByOrigin(t *testing.T, order []timedURL) map[decorum.Origin][]string {
	t.Helper()
	byOrigin := map[decorum.Origin][]string{}
	for _, a := range order {
		u, err := decorum.ParseURL(a.url)
		if err != nil {
			t.Fatal(err)
		}
		byOrigin[u.Origin()] = append(byOrigin[u.Origin()], a.url)
	}
	return byOrigin
}

// TestSameSeedSameCrawl: a crawl repeated with the same seed makes the same requests at the same
// times; with another seed, failing servers are retried at other times. Each host has a worker,
// because chance decides which of several due hosts waits for one.
func TestSameSeedSameCrawl(t *testing.T) {
	first, again, other := crawlDemo(t, 20, 1), crawlDemo(t, 20, 1), crawlDemo(t, 20, 2)
	if len(first) < 300 {
		t.Errorf("only %d requests: the web is not crawled", len(first))
	}
	if i := firstDifference(first, again); i >= 0 {
		t.Errorf("request %d differs: %v", i,
			[2][]timedURL{first[i:min(i+3, len(first))], again[i:min(i+3, len(again))]})
	}
	if firstDifference(first, other) < 0 {
		t.Error("chance is the same whatever the seed")
	}
}

// TestSameOrderWhateverTheWorkers: more workers make a crawl faster and change no origin's order.
func TestSameOrderWhateverTheWorkers(t *testing.T) {
	alone, together := urlsByOrigin(t, crawlDemo(t, 1, 1)), urlsByOrigin(t, crawlDemo(t, 8, 1))
	if len(alone) < 15 || !maps.EqualFunc(alone, together, slices.Equal[[]string]) {
		for o := range alone {
			if i := firstDifference(alone[o], together[o]); i >= 0 {
				t.Errorf("%v: request %d differs: %v", o, i, fmt.Sprint(alone[o][i:], together[o][i:]))
			}
		}
		t.Errorf("%d and %d origins", len(alone), len(together))
	}
}

// firstDifference returns the first index at which two lists differ, -1 if they are equal.
func firstDifference[T comparable](a, b []T) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}
