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
	smallest   = 10 // pages
	largest    = 100_000
	deadShare  = 0.02 // of hosts
	knownShare = 0.95 // of hosts, whose robots.txt was had before
	attempts   = 3    // of a host that is dead
	timeout    = 30 * time.Second
	ownLinks   = 40 // of a page to its own site, and of these
	newLinks   = 2
	otherLinks = 4
)

// rests are how long hosts rest after a visit, and for which share of them.
var rests = []struct {
	share float64
	rest  time.Duration
}{{0.20, 200 * time.Millisecond}, {0.60, time.Second}, {0.10, 5 * time.Second}, {0.07, 10 * time.Second}, {0.03, 30 * time.Second}}

// A site is what is known of a host.
type site struct {
	pages  uint32 // that it has
	found  uint32 // of them, so far
	rest   uint32 // in milliseconds
	failed uint8  // visits in a row
	dead   bool
	robots bool   // its robots.txt was had
	of     uint16 // partition
}

// A web is sites, and what is left to chance.
type web struct {
	sites  []site
	chance *rand.Rand
	linked *rand.Zipf
}

func newWeb(hosts, partitions int, seed uint64) *web {
	w := &web{sites: make([]site, hosts), chance: rand.New(rand.NewPCG(seed, 0))}
	w.linked = rand.NewZipf(w.chance, 1.1, 10, uint64(hosts-1))
	for i := range w.sites {
		s := &w.sites[i]
		s.pages = uint32(min(largest, smallest/(1-w.chance.Float64())))
		s.found = 1
		s.rest = uint32(w.pickRest().Milliseconds())
		s.dead = w.chance.Float64() < deadShare
		s.robots = w.chance.Float64() < knownShare
		s.of = uint16(partitionOf(hostName(i), partitions))
	}
	return w
}

// partitionOf returns the partition of a host, as storage/redis does.
func partitionOf(host string, partitions int) int {
	h := fnv.New64a()
	h.Write([]byte(host))
	return int(h.Sum64() % uint64(partitions))
}

func (w *web) pickRest() time.Duration {
	x := w.chance.Float64()
	for _, r := range rests {
		if x -= r.share; x < 0 {
			return r.rest
		}
	}
	return rests[1].rest
}

func hostName(i int) string { return fmt.Sprintf("h%d.example", i) }

// page returns the URL of a page of a site.
func page(host int, n uint32) (decorum.URL, error) {
	return decorum.ParseURL(fmt.Sprintf("https://%s/%d", hostName(host), n))
}

// answers returns how long a visit takes.
func (w *web) answers(s *site) time.Duration {
	if s.dead {
		return timeout
	}
	const median, sigma = 0.4, 1.0
	seconds := median * math.Exp(sigma*w.chance.NormFloat64())
	return min(timeout, time.Duration(seconds*float64(time.Second)))
}

// others returns sites to which a page links.
func (w *web) others() (sites [otherLinks]int) {
	for i := range sites {
		sites[i] = int(w.linked.Uint64())
	}
	return sites
}
