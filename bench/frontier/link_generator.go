package main

import (
	"github.com/decorum-crawler/decorum/bench/internal/web"
	"github.com/decorum-crawler/decorum/storage"
)

const (
	linksPerPage = web.LinksPerPage
	navLinks     = 10 // of them on each page of the site
)

// A linkGenerator makes up the links of pages, page n of site s, over so many sites.
type linkGenerator struct{ originCount int }

func (o linkGenerator) newEntry(n, page int) storage.Entry {
	return web.Entry(web.Scatter(n, o.originCount), "section", page)
}

// scatteredLinksOfPage is the links of the n-th page, each of another site than the one
// before: the worst for a store that keeps sites together.
func (o linkGenerator) scatteredLinksOfPage(n int) []storage.Entry {
	entries := make([]storage.Entry, linksPerPage)
	for i := range entries {
		k := n*linksPerPage + i
		entries[i] = o.newEntry(k%o.originCount, k/o.originCount)
	}
	return entries
}

// mostlyInternalLinksOfPage is the links of the n-th page, four of five of its own site. The
// numbers of pages are below 1<<40 for links within, and above from elsewhere.
func (o linkGenerator) mostlyInternalLinksOfPage(n int) []storage.Entry {
	entries := make([]storage.Entry, linksPerPage)
	own := linksPerPage * 4 / 5
	for i := range entries {
		if i < own {
			entries[i] = o.newEntry(n%o.originCount, n/o.originCount*own+i)
		} else {
			entries[i] = o.newEntry(n*linksPerPage+i, 1<<40+n*linksPerPage+i)
		}
	}
	return entries
}

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
