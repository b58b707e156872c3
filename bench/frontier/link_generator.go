package main

import (
	"github.com/decorum-crawler/decorum/bench/internal/web"
	"github.com/decorum-crawler/decorum/storage"
)

const (
	linksPerPage = web.LinksPerPage
	navLinks     = 10 // links that all pages of a site have in common
)

// A linkGenerator generates the links of pages on originCount sites.
type linkGenerator struct{ originCount int }

// newEntry returns the link to a page of the n-th site. Consecutive sites have distant names.
func (o linkGenerator) newEntry(n, page int) storage.Entry {
	return web.Entry(web.Scatter(n, o.originCount), "section", page)
}

// scatteredLinksOfPage returns the links of the n-th page, each to another site than the one
// before: the worst case for a store that keeps sites together.
func (o linkGenerator) scatteredLinksOfPage(n int) []storage.Entry {
	entries := make([]storage.Entry, linksPerPage)
	for i := range entries {
		k := n*linksPerPage + i
		entries[i] = o.newEntry(k%o.originCount, k/o.originCount)
	}
	return entries
}

// mostlyInternalLinksOfPage returns the links of the n-th page, four of five to its own site. The
// number of the linked page is below 1<<40 for links within a site, and above for the others.
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

// An xorshift64 is a random number generator of that name, without a lock. It must not be 0.
type xorshift64 uint64

// intN returns a random number in [0, n).
func (r *xorshift64) intN(n int) int {
	x := uint64(*r)
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*r = xorshift64(x)
	return int(x % uint64(n))
}
