package politeness

import (
	"math"
	"slices"
	"time"
)

// A crawlDemand is what a crawl asks for. It holds while visits are out, and until then.
type crawlDemand struct {
	limiter      *Limiter
	delay        time.Duration
	slots        int
	activeVisits int
	expires      time.Time
}

// setCrawlDemand notes what a crawl asks for from now on.
func (p *visitSemaphore) setCrawlDemand(crawl *Limiter, now time.Time, delay time.Duration, slots int) {
	c := p.demandOf(crawl)
	if c == nil {
		p.crawlDemands = append(p.crawlDemands, crawlDemand{limiter: crawl})
		c = &p.crawlDemands[len(p.crawlDemands)-1]
	}
	c.delay, c.slots, c.expires = delay, slots, laterTime(c.expires, now)
	p.recomputeLimits(now)
}

// demandOf returns the claim of a crawl, nil if it has none.
func (p *visitSemaphore) demandOf(crawl *Limiter) *crawlDemand {
	for i := range p.crawlDemands {
		if p.crawlDemands[i].limiter == crawl {
			return &p.crawlDemands[i]
		}
	}
	return nil
}

// extendDemandExpiry keeps the claim of a crawl that can come again at a time.
func (p *visitSemaphore) extendDemandExpiry(crawl *Limiter, at time.Time) {
	if c := p.demandOf(crawl); c != nil {
		c.expires = laterTime(c.expires, at.Add(grantTimeout))
	}
}

// recomputeLimits forgets the claims of crawls that come no more: what is left rules, and
// if nothing is, what was said last.
func (p *visitSemaphore) recomputeLimits(now time.Time) {
	p.crawlDemands = slices.DeleteFunc(p.crawlDemands, func(c crawlDemand) bool { return c.activeVisits == 0 && c.expires.Before(now) })
	if len(p.crawlDemands) == 0 {
		return
	}
	p.minSlots, p.maxDelay = math.MaxInt, 0
	for _, c := range p.crawlDemands {
		p.minSlots, p.maxDelay = min(p.minSlots, c.slots), max(p.maxDelay, c.delay)
	}
}
