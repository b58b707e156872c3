package main

import (
	"fmt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// linksPerPage is how many a page has.
const linksPerPage = 50

// A discoveryOrder says which page of which host the n-th link is.
type discoveryOrder struct {
	name   string
	linkAt func(n, hosts int) (host, page int)
}

var orders = []discoveryOrder{
	{"scattered", func(n, hosts int) (host, page int) { return scatterHost(n, hosts), n }},
	{"paged", func(n, hosts int) (host, page int) {
		if n%5 == 0 {
			return scatterHost(n, hosts), n
		}
		return scatterHost(n/linksPerPage, hosts), n
	}},
}

// scatterHost puts consecutive numbers far from each other.
func scatterHost(n, hosts int) int { return n * 7_368_787 % hosts }

// pageLinks returns the links of the n-th page. Pages of one order are not found in another.
func (o discoveryOrder) pageLinks(n, hosts int) []storage.Entry {
	entries := make([]storage.Entry, linksPerPage)
	for i := range entries {
		host, page := o.linkAt(n*linksPerPage+i, hosts)
		u, err := decorum.ParseURL(fmt.Sprintf("https://www.site-%d.example/%s-%d/article-%d.html", host, o.name, page%17, page))
		if err != nil {
			panic(err) // cannot be
		}
		entries[i] = storage.Entry{
			URL: u, Source: storage.SourceLink, PriorityClass: storage.ClassNormal, Depth: 3,
			Referrer: fmt.Sprintf("https://www.site-%d.example/%s-%d/index.html", host, o.name, page%17),
		}
	}
	return entries
}
