package main

import (
	"fmt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// links is how many a page has.
const links = 50

// An order of discovery is which page of which host the n-th link is.
type order struct {
	name string
	link func(n, hosts int) (host, page int)
}

var orders = []order{
	{"scattered", func(n, hosts int) (host, page int) { return spread(n, hosts), n }},
	{"paged", func(n, hosts int) (host, page int) {
		if n%5 == 0 {
			return spread(n, hosts), n
		}
		return spread(n/links, hosts), n
	}},
}

// spread puts consecutive numbers far from each other.
func spread(n, hosts int) int { return n * 7_368_787 % hosts }

// page returns the links of the n-th page. Pages of one order are not found in another.
func (o order) page(n, hosts int) []storage.Entry {
	entries := make([]storage.Entry, links)
	for i := range entries {
		host, page := o.link(n*links+i, hosts)
		u, err := decorum.ParseURL(fmt.Sprintf("https://www.site-%d.example/%s-%d/article-%d.html", host, o.name, page%17, page))
		if err != nil {
			panic(err) // cannot be
		}
		entries[i] = storage.Entry{
			URL: u, Source: storage.Link, Class: storage.Usual, Depth: 3,
			Referrer: fmt.Sprintf("https://www.site-%d.example/%s-%d/index.html", host, o.name, page%17),
		}
	}
	return entries
}
