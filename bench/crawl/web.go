package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/decorum-crawler/decorum/bench/internal/web"
)

// A workload is a web to crawl: the number of its hosts, and the number of pages of each. Links lead
// from the first page of the first host to every other page.
type workload struct {
	Hosts, Pages int
	TLS          *tlsWeb // nil: http, without compression, latency and delay
}

const (
	pageBytes     = 20_480
	linksPerPage  = 50 // links of a page
	externalLinks = 10 // links of a page to other hosts, if the web has several
)

// numPages returns the number of pages of the web.
func (w workload) numPages() int { return w.Hosts * w.Pages }

// defaultWorkers returns the default of -workers. With https, most workers wait for the latency.
func (w workload) defaultWorkers() int {
	if w.TLS != nil {
		return 64
	}
	return 16
}

// hostName returns the name of a host by its number.
func hostName(host int) string { return "site-" + strconv.Itoa(host) + ".example" }

// hostNumber returns the number of the host with a name or an address, which a port may follow, and
// whether the web has the host.
func (w workload) hostNumber(name string) (int, bool) {
	name, _, _ = strings.Cut(name, ":")
	host := -1
	if digits, ok := strings.CutSuffix(strings.TrimPrefix(name, "site-"), ".example"); ok {
		if n, err := strconv.Atoi(digits); err == nil && name == hostName(n) {
			host = n
		}
	} else if address, err := netip.ParseAddr(name); err == nil && address.Is4() {
		b := address.As4()
		host = int(binary.BigEndian.Uint32(b[:])) - firstAddress
	}
	return host, host >= 0 && host < w.Hosts
}

// firstAddress is the address of the first host, 127.1.0.0, as a number. The next host has the next
// address.
const firstAddress = 127<<24 | 1<<16

// hostAddress returns the address of a host by its number, for crawlers that neither use a proxy for
// https nor have a setting for the address to which they connect.
func hostAddress(host int) net.IP {
	return binary.BigEndian.AppendUint32(nil, uint32(firstAddress+host))
}

// originOf returns the start of the URLs of a host.
func (w workload) originOf(host int) string {
	if w.TLS != nil {
		return "https://" + hostName(host)
	}
	return "http://" + hostName(host)
}

// addressOrigin returns a function that returns the start of the URLs of a host with the address of
// the host and the port of server.
func addressOrigin(server string) func(host int) string {
	_, port, _ := strings.Cut(server, ":")
	return func(host int) string { return "https://" + hostAddress(host).String() + ":" + port }
}

// seedURL returns the URL of the first page of the first host.
func (w workload) seedURL() string { return w.originOf(0) + web.PagePath(0) }

// pageNumber returns the number of the page at a path, and whether the page exists.
func (w workload) pageNumber(p string) (int, bool) {
	page, ok := web.PageNumber(p)
	return page, ok && page < w.Pages
}

// linksOf returns the links of a page. The links within a host form a tree, and so do those to other
// hosts, so that a crawl soon has many pages in its queue, and knows most links of a page. Links to
// other hosts begin with what origin returns.
func (w workload) linksOf(host, page int, origin func(int) string) []string {
	total, external := linksPerPage, externalLinks
	if w.TLS != nil {
		// Of a small host, a page links to each page once, and otherwise to other hosts.
		total = w.TLS.Links
		external = max(externalLinks, total-w.Pages)
	}
	links := make([]string, 0, total)
	if w.Hosts > 1 {
		for i := range external {
			links = append(links, origin((host*external+i+1)%w.Hosts)+web.PagePath(page))
		}
	}
	own := total - len(links)
	for i := range own {
		links = append(links, web.PagePath((page*own+i+1)%w.Pages))
	}
	return links
}

// The parts of the HTML of a page.
const (
	pageHead = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Article %d of %s</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/style.css"></head>
<body><header><h1>Article %[1]d</h1></header><main>
`
	pageSection = `<section><h2>Part %d</h2><p>Of <em>many</em> things <strong>one</strong> leads to <span class="more">` +
		`<a class="entry" href="%s">another</a></span>`
	fillerText = "so that whoever reads it may go on reading, "
	pageTail   = "</main></body></html>\n"
)

// pageHTML returns the HTML of a page: about 370 elements in exactly pageBytes bytes.
func (w workload) pageHTML(host, page int) string {
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, page, hostName(host))
	begin, available := b.Len(), pageBytes-len(pageTail)-b.Len()
	for i, link := range w.linksOf(host, page, w.originOf) {
		fmt.Fprintf(&b, pageSection, i, link)
		text := begin + available*(i+1)/linksPerPage - b.Len() - len("</p></section>\n")
		b.WriteString(strings.Repeat(fillerText, text/len(fillerText)+1)[:text])
		b.WriteString("</p></section>\n")
	}
	b.WriteString(pageTail)
	return b.String()
}
