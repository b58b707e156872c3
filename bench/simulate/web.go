package main

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"github.com/decorum-crawler/decorum"
)

// The properties of the web: see the program's documentation.
const (
	minSitePages     = 10
	maxSitePages     = 100_000
	deadHostShare    = 0.02 // share of hosts that never respond
	knownRobotsShare = 0.95 // share of hosts whose robots.txt is known at the beginning
	maxAttempts      = 3    // visits to a dead host
	visitTimeout     = 30 * time.Second
	internalLinks    = 40 // links of a page to its own site
	newLinksPerPage  = 2  // internalLinks to new pages
	externalLinks    = 4  // links of a page to other sites
)

// delayShares lists the delays after a visit, and the share of hosts with each.
var delayShares = []struct {
	share float64
	delay time.Duration
}{{0.20, 200 * time.Millisecond}, {0.60, time.Second}, {0.10, 5 * time.Second},
	{0.07, 10 * time.Second}, {0.03, 30 * time.Second}}

// A site is a host and the state of its crawl.
type site struct {
	pageCount           uint32
	discoveredPages     uint32 // pages that links have led to so far
	delayMillis         uint32
	consecutiveFailures uint8
	isDead              bool // never responds
	robotsFetched       bool
	partition           uint16
}

// A web is the simulated sites, and the source of random choices.
type web struct {
	sites          []site
	rnd            *rand.Rand
	linkTargetZipf *rand.Zipf // indexes of sites: some are linked to often
}

// newWeb returns a web of the given number of hosts. The same seed gives the same web.
func newWeb(hosts, partitions int, seed uint64) *web {
	w := &web{sites: make([]site, hosts), rnd: rand.New(rand.NewPCG(seed, 0))}
	w.linkTargetZipf = rand.NewZipf(w.rnd, 1.1, 10, uint64(hosts-1))
	for i := range w.sites {
		s := &w.sites[i]
		s.pageCount = uint32(min(maxSitePages, minSitePages/(1-w.rnd.Float64())))
		s.discoveredPages = 1
		s.delayMillis = uint32(w.pickDelay().Milliseconds())
		s.isDead = w.rnd.Float64() < deadHostShare
		s.robotsFetched = w.rnd.Float64() < knownRobotsShare
		s.partition = uint16(partitionOf(hostName(i), partitions))
	}
	return w
}

// partitionOf returns the partition of a host, with the same hash as storage/redis.
func partitionOf(host string, partitions int) int {
	h := fnv.New64a()
	h.Write([]byte(host))
	return int(h.Sum64() % uint64(partitions))
}

// pickDelay returns a random delay by delayShares.
func (w *web) pickDelay() time.Duration {
	x := w.rnd.Float64()
	for _, r := range delayShares {
		if x -= r.share; x < 0 {
			return r.delay
		}
	}
	return delayShares[1].delay
}

// hostName returns the name of the i-th host.
func hostName(i int) string { return fmt.Sprintf("h%d.example", i) }

// pageURL returns the URL of page n of a site.
func pageURL(host int, n uint32) (decorum.URL, error) {
	return decorum.ParseURL(fmt.Sprintf("https://%s/%d", hostName(host), n))
}

// randomVisitDuration returns the duration of a visit: visitTimeout for a dead host, and otherwise a
// log-normal time with a median of 0.4 s.
func (w *web) randomVisitDuration(s *site) time.Duration {
	if s.isDead {
		return visitTimeout
	}
	const median, sigma = 0.4, 1.0
	seconds := median * math.Exp(sigma*w.rnd.NormFloat64())
	return min(visitTimeout, time.Duration(seconds*float64(time.Second)))
}

// pickLinkedSites returns the indexes of random sites for the external links of a page.
func (w *web) pickLinkedSites() (sites [externalLinks]int) {
	for i := range sites {
		sites[i] = int(w.linkTargetZipf.Uint64())
	}
	return sites
}
