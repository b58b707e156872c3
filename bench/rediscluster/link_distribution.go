package main

import (
	"github.com/decorum-crawler/decorum/bench/internal/web"
	"github.com/decorum-crawler/decorum/storage"
)

const linksPerPage = web.LinksPerPage

// A linkDistribution is an order of discovery: linkAt returns the host and the page of the n-th
// link.
type linkDistribution struct {
	name   string
	linkAt func(n, hosts int) (host, page int)
}

// orders lists the orders of discovery: see the program's documentation.
var orders = []linkDistribution{
	{"scattered", func(n, hosts int) (host, page int) { return web.Scatter(n, hosts), n }},
	{"paged", func(n, hosts int) (host, page int) {
		if n%5 == 0 {
			return web.Scatter(n, hosts), n
		}
		return web.Scatter(n/linksPerPage, hosts), n
	}},
}

// pageLinks returns the links of the n-th page. Two orders have no page in common.
func (o linkDistribution) pageLinks(n, hosts int) []storage.Entry {
	entries := make([]storage.Entry, linksPerPage)
	for i := range entries {
		host, page := o.linkAt(n*linksPerPage+i, hosts)
		entries[i] = web.Entry(host, o.name, page)
	}
	return entries
}
