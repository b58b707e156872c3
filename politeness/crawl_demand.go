package politeness

import (
	"math"
	"slices"
	"time"
)

// A crawlDemand is what a crawl asks for. It holds while visits are out, and until then.
type crawlDemand struct {
	crawl *Limits
	gap   time.Duration
	slots int
	out   int
	until time.Time
}

// setDemand notes what a crawl asks for from now on.
func (p *pool) setDemand(crawl *Limits, now time.Time, gap time.Duration, slots int) {
	c := p.demandOf(crawl)
	if c == nil {
		p.claims = append(p.claims, crawlDemand{crawl: crawl})
		c = &p.claims[len(p.claims)-1]
	}
	c.gap, c.slots, c.until = gap, slots, latest(c.until, now)
	p.settle(now)
}

// demandOf returns the claim of a crawl, nil if it has none.
func (p *pool) demandOf(crawl *Limits) *crawlDemand {
	for i := range p.claims {
		if p.claims[i].crawl == crawl {
			return &p.claims[i]
		}
	}
	return nil
}

// expect keeps the claim of a crawl that can come again at a time.
func (p *pool) expect(crawl *Limits, at time.Time) {
	if c := p.demandOf(crawl); c != nil {
		c.until = latest(c.until, at.Add(patience))
	}
}

// settle forgets the claims of crawls that come no more: what is left rules, and
// if nothing is, what was said last.
func (p *pool) settle(now time.Time) {
	p.claims = slices.DeleteFunc(p.claims, func(c crawlDemand) bool { return c.out == 0 && c.until.Before(now) })
	if len(p.claims) == 0 {
		return
	}
	p.slots, p.gap = math.MaxInt, 0
	for _, c := range p.claims {
		p.slots, p.gap = min(p.slots, c.slots), max(p.gap, c.gap)
	}
}
