package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// A tlsWeb says what a web of https pages has beside hosts and pages. Its server speaks TLS 1.3 with
// ECDSA P-256, compresses bodies with gzip if the request allows it, and sends each response after
// Latency.
type tlsWeb struct {
	Links       int // of each page
	MeanBytes   int // of the decoded bodies of pages
	MedianBytes int // if it differs from MeanBytes, the sizes have a log-normal distribution
	// Delay is the pause that decorum owes to a host. The other crawlers make none.
	Delay                 time.Duration
	Latency               time.Duration
	IdleTimeout           time.Duration // the server closes a connection that is idle for so long
	KeepAliveHeader       bool          // responses announce IdleTimeout in a Keep-Alive header
	RequestsPerConnection int           // the server closes a connection after so many; 0: no limit
	HTTP2                 bool          // the server offers HTTP/2
}

// The sizes of pages are cut to this range. The upper end is below decorum's default limit of a body.
const (
	minPageBytes = 4 << 10
	maxPageBytes = 8 << 20
)

// workloads returns the workloads that -workload names.
func workloads() map[string]workload {
	return map[string]workload{
		"W1": {Hosts: 1, Pages: 10_000},
		"W2": {Hosts: 200, Pages: 100},
		"broad": {Hosts: 2_000, Pages: 10, TLS: &tlsWeb{
			Links: linksPerPage, MeanBytes: pageBytes, MedianBytes: pageBytes,
			Delay: time.Second, Latency: 50 * time.Millisecond, IdleTimeout: time.Minute,
		}},
		"web-2025": {Hosts: 20_000, Pages: 1, TLS: &tlsWeb{
			Links: 80, MeanBytes: 242 << 10, MedianBytes: 138 << 10,
			Delay: time.Second, Latency: 50 * time.Millisecond, IdleTimeout: time.Minute, RequestsPerConnection: 1,
		}},
	}
}

// sizeOfPage returns the size of the n-th page of the web, in bytes. A log-normal distribution has
// the median exp(mu) and the mean exp(mu + sigma²/2). The n-th page has the size at the quantile
// n × the golden ratio modulo 1: any range of pages covers the distribution evenly, so that webs of
// few pages have its median and its mean, too.
func (t *tlsWeb) sizeOfPage(n int) int {
	sigma := math.Sqrt(2 * math.Log(float64(t.MeanBytes)/float64(t.MedianBytes)))
	_, quantile := math.Modf((float64(n) + 0.5) * math.Phi)
	size := float64(t.MedianBytes) * math.Exp(sigma*math.Sqrt2*math.Erfinv(2*quantile-1))
	return int(math.Round(min(max(size, minPageBytes), maxPageBytes)))
}

// A filler is text for pages that compresses about as well as pages of the web: elements, text of
// words by Zipf's law, and scripts.
type filler struct {
	words  string   // text without elements
	chunks []string // HTML of chunkBytes each
}

const (
	fillerChunks = 64
	chunkBytes   = 16 << 10
	fillerCard   = `<div class="card card-%d"><h3 class="card-title">%s</h3><p class="card-text">%s` +
		"<em>%s</em> %s</p></div>\n"
	fillerScript = `<script>window.data.push({"id":%d,"name":"%s","tags":["%s"],"on":true})</script>` + "\n"
)

// newFiller returns the filler, which is always the same.
func newFiller() filler {
	source := rand.New(rand.NewPCG(20, 25))
	vocabulary := make([]string, 2_000)
	for i := range vocabulary {
		word := make([]byte, 2+source.IntN(9))
		for j := range word {
			word[j] = "eeeettaaooiinnsshhrrddlluucmwfgypbvk"[source.IntN(36)]
		}
		vocabulary[i] = string(word)
	}
	zipf := rand.NewZipf(source, 1.5, 8, uint64(len(vocabulary)-1))
	sentence := func(length int) string {
		var b strings.Builder
		for b.Len() < length {
			b.WriteString(vocabulary[zipf.Uint64()])
			b.WriteByte(' ')
		}
		return b.String()[:length]
	}
	f := filler{words: sentence(chunkBytes)}
	for range fillerChunks {
		var b strings.Builder
		for block := 0; chunkBytes-b.Len() > 1024; block++ {
			if block%8 == 7 {
				fmt.Fprintf(&b, fillerScript, source.Uint32(), sentence(24), strings.Join(strings.Fields(sentence(120)), `","`))
				continue
			}
			fmt.Fprintf(&b, fillerCard, source.IntN(40), sentence(20+source.IntN(20)),
				sentence(80+source.IntN(120)), sentence(12), sentence(60+source.IntN(80)))
		}
		b.WriteString("<p>" + sentence(chunkBytes-b.Len()-len("<p></p>\n")) + "</p>\n")
		f.chunks = append(f.chunks, b.String())
	}
	return f
}

// tlsPageParts returns the parts of the HTML of a page, which follow each other: a head with all
// links, chunks of the filler, from the one with the number firstChunk on, and a tail. Links to other
// hosts begin with what origin returns.
func (w workload) tlsPageParts(f filler, host, page int, origin func(int) string) (head string, firstChunk,
	chunks int, tail string) {
	n := host*w.Pages + page
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, page, hostName(host))
	for i, link := range w.linksOf(host, page, origin) {
		fmt.Fprintf(&b, pageSection, i, link)
		at := (n*31 + i*61) % (len(f.words) - 64)
		b.WriteString(f.words[at : at+64])
		b.WriteString("</p></section>\n")
	}
	remaining := max(0, w.TLS.sizeOfPage(n)-b.Len()-len("<p></p>\n")-len(pageTail))
	chunks, last := remaining/chunkBytes, remaining%chunkBytes
	return b.String(), n % len(f.chunks), chunks, "<p>" + f.words[:last] + "</p>\n" + pageTail
}
