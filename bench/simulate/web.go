package main

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"github.com/decorum-crawler/decorum"
)

// The web: see the program's documentation.
const (
	minSitePages     = 10 // pages
	maxSitePages     = 100_000
	deadHostShare    = 0.02 // of hosts
	knownRobotsShare = 0.95 // of hosts, whose robots.txt was had before
	maxAttempts      = 3    // of a host that is dead
	visitTimeout     = 30 * time.Second
	internalLinks    = 40 // of a page to its own site, and of these
	newLinksPerPage  = 2
	externalLinks    = 4
)

// delayShares are how long hosts rest after a visit, and for which share of them.
var delayShares = []struct {
	share float64
	delay time.Duration
}{{0.20, 200 * time.Millisecond}, {0.60, time.Second}, {0.10, 5 * time.Second}, {0.07, 10 * time.Second}, {0.03, 30 * time.Second}}

// A site is what is known of a host.
type site struct {
	pageCount           uint32 // that it has
	discoveredPages     uint32 // of them, so far
	delayMillis         uint32 // in milliseconds
	consecutiveFailures uint8  // visits in a row
	isDead              bool
	robotsFetched       bool   // its robots.txt was had
	partition           uint16 // partition
}

// A web is sites, and what is left to chance.
type web struct {
	sites          []site
	rnd            *rand.Rand
	linkTargetZipf *rand.Zipf
}

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

// partitionOf returns the partition of a host, as storage/redis does.
func partitionOf(host string, partitions int) int {
	h := fnv.New64a()
	h.Write([]byte(host))
	return int(h.Sum64() % uint64(partitions))
}

func (w *web) pickDelay() time.Duration {
	x := w.rnd.Float64()
	for _, r := range delayShares {
		if x -= r.share; x < 0 {
			return r.delay
		}
	}
	return delayShares[1].delay
}

func hostName(i int) string { return fmt.Sprintf("h%d.example", i) }

// pageURL returns the URL of a page of a site.
func pageURL(host int, n uint32) (decorum.URL, error) {
	return decorum.ParseURL(fmt.Sprintf("https://%s/%d", hostName(host), n))
}

// randomVisitDuration returns how long a visit takes.
func (w *web) randomVisitDuration(s *site) time.Duration {
	if s.isDead {
		return visitTimeout
	}
	const median, sigma = 0.4, 1.0
	seconds := median * math.Exp(sigma*w.rnd.NormFloat64())
	return min(visitTimeout, time.Duration(seconds*float64(time.Second)))
}

// pickLinkedSites returns sites to which a page links.
func (w *web) pickLinkedSites() (sites [externalLinks]int) {
	for i := range sites {
		sites[i] = int(w.linkTargetZipf.Uint64())
	}
	return sites
}
