package main

import (
	"fmt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

const (
	linksPerPage = 50 // of a page
	navLinks     = 10 // of them on each page of the site
)

// A web is made of numbers: page n of site s.
type web struct{ originCount int }

func (w web) newEntry(site, page int) storage.Entry {
	u, err := decorum.ParseURL(fmt.Sprintf("https://www.site-%d.example/section-%d/article-%d.html", site%w.originCount, page%17, page))
	if err != nil {
		panic(err) // cannot be
	}
	return storage.Entry{
		URL: u, Source: storage.SourceLink, PriorityClass: storage.ClassNormal, Depth: 3,
		Referrer: fmt.Sprintf("https://www.site-%d.example/section-%d/index.html", site%w.originCount, page%17),
	}
}

// scatteredLinksOfPage is the links of the n-th page, each of another site than the one
// before: the worst for a store that keeps sites together.
func (w web) scatteredLinksOfPage(n int) []storage.Entry {
	entries := make([]storage.Entry, linksPerPage)
	for i := range entries {
		k := n*linksPerPage + i
		entries[i] = w.newEntry(scatterOrigin(k%w.originCount), k/w.originCount)
	}
	return entries
}

// mostlyInternalLinksOfPage is the links of the n-th page, four of five of its own site. The
// numbers of pages are below 1<<40 for links within, and above from elsewhere.
func (w web) mostlyInternalLinksOfPage(n int) []storage.Entry {
	entries := make([]storage.Entry, linksPerPage)
	own := linksPerPage * 4 / 5
	for i := range entries {
		if i < own {
			entries[i] = w.newEntry(scatterOrigin(n%w.originCount), n/w.originCount*own+i)
		} else {
			entries[i] = w.newEntry(scatterOrigin(n*linksPerPage+i), 1<<40+n*linksPerPage+i)
		}
	}
	return entries
}

// scatterOrigin puts consecutive numbers far from each other, each once if below the
// number of origins, which the prime does not divide.
func scatterOrigin(n int) int { return n * 7_368_787 }

// xorshift64 is a generator that needs no lock and no seed (xorshift64).
type xorshift64 uint64

func (r *xorshift64) intN(n int) int {
	x := uint64(*r)
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*r = xorshift64(x)
	return int(x % uint64(n))
}
