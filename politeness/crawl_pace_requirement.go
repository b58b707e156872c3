package politeness

import (
	"math"
	"slices"
	"time"
)

// A crawlPaceDemand is what a crawl asks for. It holds while visits are out, and until then.
type crawlPaceDemand struct {
	limiter      *Limiter
	delay        time.Duration
	slots        int
	activeVisits int
	expires      time.Time
}

// setDemandedDelayAndSlots notes what a crawl asks for from now on.
func (p *visitSemaphore) setDemandedDelayAndSlots(crawl *Limiter, now time.Time, delay time.Duration, slots int) {
	c := p.findCrawlDemand(crawl)
	if c == nil {
		p.crawlDemands = append(p.crawlDemands, crawlPaceDemand{limiter: crawl})
		c = &p.crawlDemands[len(p.crawlDemands)-1]
	}
	c.delay, c.slots, c.expires = delay, slots, laterTime(c.expires, now)
	p.expireDemandsAndUpdateLimits(now)
}

// findCrawlDemand returns the claim of a crawl, nil if it has none.
func (p *visitSemaphore) findCrawlDemand(crawl *Limiter) *crawlPaceDemand {
	for i := range p.crawlDemands {
		if p.crawlDemands[i].limiter == crawl {
			return &p.crawlDemands[i]
		}
	}
	return nil
}

// extendDemandExpiry keeps the claim of a crawl that can come again at a time.
func (p *visitSemaphore) extendDemandExpiry(crawl *Limiter, at time.Time) {
	if c := p.findCrawlDemand(crawl); c != nil {
		c.expires = laterTime(c.expires, at.Add(grantTimeout))
	}
}

// expireDemandsAndUpdateLimits forgets the claims of crawls that come no more: what is left rules, and
// if nothing is, what was said last.
func (p *visitSemaphore) expireDemandsAndUpdateLimits(now time.Time) {
	p.crawlDemands = slices.DeleteFunc(p.crawlDemands, func(c crawlPaceDemand) bool { return c.activeVisits == 0 && c.expires.Before(now) })
	if len(p.crawlDemands) == 0 {
		return
	}
	p.minDemandedSlots, p.maxDemandedDelay = math.MaxInt, 0
	for _, c := range p.crawlDemands {
		p.minDemandedSlots, p.maxDemandedDelay = min(p.minDemandedSlots, c.slots), max(p.maxDemandedDelay, c.delay)
	}
}
