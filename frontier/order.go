package frontier

import (
	"math"

	"github.com/decorum-crawler/decorum/storage"
)

// AssignDefaultOrder is the order of a crawl that is given no other: the URLs of an
// origin go by seeds, then what sitemaps list by its priority (what feeds list,
// as if it were 0.5), then links by their depth. A redirect's target goes where
// its source went, and the crawl's own errands as they were queued.
func AssignDefaultOrder(e *storage.Entry) {
	switch e.Source {
	case storage.SourceSeed:
		e.PriorityClass, e.PriorityRank = storage.ClassEarly, 0
	case storage.SourceSitemap:
		e.PriorityClass, e.PriorityRank = storage.ClassNormal, min(e.PriorityRank, lowestPriorityRank)
	case storage.SourceFeed:
		e.PriorityClass, e.PriorityRank = storage.ClassNormal, PriorityRank(0.5)
	case storage.SourceLink:
		e.PriorityClass, e.PriorityRank = storage.ClassNormal, depthRank(e.Depth)
	}
}

// lowestPriorityRank is the rank of a sitemap's entry of priority 0. Links follow.
const lowestPriorityRank = 100

// PriorityRank returns the rank of a sitemap's entry of the given priority,
// which is from 0 to 1: what is beyond is taken for the nearest of the two.
func PriorityRank(priority float64) uint16 {
	if !(priority > 0) { // so written, NaN is none
		return lowestPriorityRank
	}
	return uint16(math.Round(lowestPriorityRank * (1 - min(priority, 1))))
}

// depthRank returns the rank of a link that is so deep.
func depthRank(depth int) uint16 {
	const firstRank = lowestPriorityRank + 1
	return firstRank + uint16(min(max(depth, 0), math.MaxUint16-firstRank))
}
