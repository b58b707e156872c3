package politeness

import (
	"math"
	"slices"
	"time"
)

// A crawlDemand is what a crawl asks for. It holds while visits are out, and until then.
type crawlDemand struct {
	crawl        *Limiter
	delay        time.Duration
	slots        int
	activeVisits int
	expires      time.Time
}

// setDemand notes what a crawl asks for from now on.
func (p *visitSemaphore) setDemand(crawl *Limiter, now time.Time, delay time.Duration, slots int) {
	c := p.demandOf(crawl)
	if c == nil {
		p.demands = append(p.demands, crawlDemand{crawl: crawl})
		c = &p.demands[len(p.demands)-1]
	}
	c.delay, c.slots, c.expires = delay, slots, laterTime(c.expires, now)
	p.recomputeLimits(now)
}

// demandOf returns the claim of a crawl, nil if it has none.
func (p *visitSemaphore) demandOf(crawl *Limiter) *crawlDemand {
	for i := range p.demands {
		if p.demands[i].crawl == crawl {
			return &p.demands[i]
		}
	}
	return nil
}

// extendDemand keeps the claim of a crawl that can come again at a time.
func (p *visitSemaphore) extendDemand(crawl *Limiter, at time.Time) {
	if c := p.demandOf(crawl); c != nil {
		c.expires = laterTime(c.expires, at.Add(grantTimeout))
	}
}

// recomputeLimits forgets the claims of crawls that come no more: what is left rules, and
// if nothing is, what was said last.
func (p *visitSemaphore) recomputeLimits(now time.Time) {
	p.demands = slices.DeleteFunc(p.demands, func(c crawlDemand) bool { return c.activeVisits == 0 && c.expires.Before(now) })
	if len(p.demands) == 0 {
		return
	}
	p.slots, p.delay = math.MaxInt, 0
	for _, c := range p.demands {
		p.slots, p.delay = min(p.slots, c.slots), max(p.delay, c.delay)
	}
}
