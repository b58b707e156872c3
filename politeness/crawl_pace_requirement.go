package politeness

import (
	"math"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
)

// A crawlPaceRequirement is what a crawl asks for. It holds while visits are out, and until then.
type crawlPaceRequirement struct {
	limiter      *Limiter
	delay        time.Duration
	slots        int
	activeVisits int
	expires      time.Time
}

// setRequiredDelayAndSlots notes what a crawl asks for from now on.
func (p *sharedVisitLimiter) setRequiredDelayAndSlots(crawl *Limiter, now time.Time, delay time.Duration, slots int) {
	c := p.findCrawlRequirement(crawl)
	if c == nil {
		p.crawlRequirements = append(p.crawlRequirements, crawlPaceRequirement{limiter: crawl})
		c = &p.crawlRequirements[len(p.crawlRequirements)-1]
	}
	c.delay, c.slots, c.expires = delay, slots, timecmp.Later(c.expires, now)
	p.expireRequirementsAndUpdateLimits(now)
}

// findCrawlRequirement returns the claim of a crawl, nil if it has none.
func (p *sharedVisitLimiter) findCrawlRequirement(crawl *Limiter) *crawlPaceRequirement {
	for i := range p.crawlRequirements {
		if p.crawlRequirements[i].limiter == crawl {
			return &p.crawlRequirements[i]
		}
	}
	return nil
}

// extendCrawlRequirementUntil keeps the claim of a crawl that can come again at a time.
func (p *sharedVisitLimiter) extendCrawlRequirementUntil(crawl *Limiter, at time.Time) {
	if c := p.findCrawlRequirement(crawl); c != nil {
		c.expires = timecmp.Later(c.expires, at.Add(grantTimeout))
	}
}

// expireRequirementsAndUpdateLimits forgets the claims of crawls that come no more: what is left rules, and
// if nothing is, what was said last.
func (p *sharedVisitLimiter) expireRequirementsAndUpdateLimits(now time.Time) {
	p.crawlRequirements = slices.DeleteFunc(p.crawlRequirements, func(c crawlPaceRequirement) bool { return c.activeVisits == 0 && c.expires.Before(now) })
	if len(p.crawlRequirements) == 0 {
		return
	}
	p.minRequiredSlots, p.maxRequiredDelay = math.MaxInt, 0
	for _, c := range p.crawlRequirements {
		p.minRequiredSlots, p.maxRequiredDelay = min(p.minRequiredSlots, c.slots), max(p.maxRequiredDelay, c.delay)
	}
}
