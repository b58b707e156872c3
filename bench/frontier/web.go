package main

import (
	"fmt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

const (
	links = 50 // of a page
	nav   = 10 // of them on each page of the site
)

// A web is made of numbers: page n of site s.
type web struct{ origins int }

func (w web) entry(site, page int) storage.Entry {
	u, err := decorum.ParseURL(fmt.Sprintf("https://www.site-%d.example/section-%d/article-%d.html", site%w.origins, page%17, page))
	if err != nil {
		panic(err) // cannot be
	}
	return storage.Entry{
		URL: u, Source: storage.Link, Class: storage.Usual, Depth: 3,
		Referrer: fmt.Sprintf("https://www.site-%d.example/section-%d/index.html", site%w.origins, page%17),
	}
}

// scattered is the links of the n-th page, each of another site than the one
// before: the worst for a store that keeps sites together.
func (w web) scattered(n int) []storage.Entry {
	entries := make([]storage.Entry, links)
	for i := range entries {
		k := n*links + i
		entries[i] = w.entry(spread(k%w.origins), k/w.origins)
	}
	return entries
}

// paged is the links of the n-th page, four of five of its own site. The
// numbers of pages are below 1<<40 for links within, and above from elsewhere.
func (w web) paged(n int) []storage.Entry {
	entries := make([]storage.Entry, links)
	own := links * 4 / 5
	for i := range entries {
		if i < own {
			entries[i] = w.entry(spread(n%w.origins), n/w.origins*own+i)
		} else {
			entries[i] = w.entry(spread(n*links+i), 1<<40+n*links+i)
		}
	}
	return entries
}

// spread puts consecutive numbers far from each other, each once if below the
// number of origins, which the prime does not divide.
func spread(n int) int { return n * 7_368_787 }

// random is a generator that needs no lock and no seed (xorshift64).
type random uint64

func (r *random) below(n int) int {
	x := uint64(*r)
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*r = random(x)
	return int(x % uint64(n))
}
