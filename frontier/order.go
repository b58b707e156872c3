package frontier

import (
	"math"

	"github.com/decorum-crawler/decorum/storage"
)

// AssignDefaultOrder is the default of Config.AssignOrder. Within an origin, seeds go first, then
// URLs of sitemaps by their priority (URLs of feeds as if theirs were 0.5), then links by depth. A
// resource has the depth of its page, so it goes before the links of that page. The target of a
// redirect keeps the order of its source, and prerequisites keep the order they were queued with.
func AssignDefaultOrder(e *storage.Entry) {
	switch e.Source {
	case storage.SourceSeed:
		e.PriorityClass, e.PriorityRank = storage.ClassEarly, 0
	case storage.SourceSitemap:
		e.PriorityClass, e.PriorityRank = storage.ClassNormal, min(e.PriorityRank, lowestPriorityRank)
	case storage.SourceFeed:
		e.PriorityClass, e.PriorityRank = storage.ClassNormal, PriorityRank(0.5)
	case storage.SourceLink, storage.SourceResource:
		e.PriorityClass, e.PriorityRank = storage.ClassNormal, depthRank(e.Depth)
	}
}

// lowestPriorityRank is the rank of a sitemap's URL of priority 0. Links rank after it.
const lowestPriorityRank = 100

// PriorityRank returns the rank of a sitemap's URL of the given priority, from 0 to 1. A priority
// outside that range counts as its nearest end, NaN as 0.
func PriorityRank(priority float64) uint16 {
	if !(priority > 0) { // this form includes NaN
		return lowestPriorityRank
	}
	return uint16(math.Round(lowestPriorityRank * (1 - min(priority, 1))))
}

// depthRank returns the rank of a link at the given depth.
func depthRank(depth int) uint16 {
	const firstRank = lowestPriorityRank + 1
	return firstRank + uint16(min(max(depth, 0), math.MaxUint16-firstRank))
}
