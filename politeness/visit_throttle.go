package politeness

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
)

// grantTimeout is how long a slot is kept free for who was called, and for how long
// a crawl that could come again, and does not, still has a say.
const grantTimeout = 10 * time.Second

// maxWaitEstimate bounds for how long who waits is told to stay away, in case
// nobody calls: a crash could leave it waiting.
const maxWaitEstimate = 10 * time.Minute

// A visitThrottle is what several visitors share, the crawls of a host or the hosts of an
// address: visits at a time, a rest between them, and a line of those who wait.
// Who finds no slot is put into the line, and called when it is its turn: the
// slot is then kept for it. So each visit costs who waits one question, however
// many wait, and those who want the same take turns.
type visitThrottle struct {
	crawlRequirements        []crawlPaceRequirement // of the crawls that visit at the same time
	minRequiredSlots         int                    // the least of theirs
	maxRequiredDelay         time.Duration          // the longest of theirs
	skipsCrawlsWithoutWorker bool                   // nobody is called who has no worker for it: see Limiter.SetWorkers

	activeVisits int       // visits under way
	lastEnd      time.Time // the last visit
	dueAt        time.Time // no visit begins before: what visits have earned
	dueSetBy     *Limiter  // the crawl whose visit earned due; nil: of another process

	crawlQueue             []crawlHostKey // who waits, and some that have left
	headPosition           int            // the place of line[0], counted from when the pool was met
	queuePositions         map[crawlHostKey]int
	earliestStartByGrantee map[crawlHostKey]time.Time // who was called, and from when on it can come
	meanVisitDuration      time.Duration              // how long visits take, a moving mean
}

// A crawlHostKey is a crawl that wants to visit a host.
type crawlHostKey struct {
	crawlLimiter *Limiter
	host         string
}

// nextStart is when the next visit may begin.
func (p *visitThrottle) nextStart() time.Time {
	return timecmp.Later(p.dueAt, p.lastEnd.Add(p.maxRequiredDelay))
}

// acquireOrEnqueue takes a slot for a visit, of a crawl that has a claim. If there is none
// it returns false and when to ask again, unless the waiter is called before.
func (p *visitThrottle) acquireOrEnqueue(now time.Time, w crawlHostKey) (until time.Time, ok bool) {
	start := p.nextStart()
	if !p.hasWaiters() && p.activeVisits < p.minRequiredSlots && !now.Before(start) {
		p.addActiveVisit(w.crawlLimiter)
		return now, true
	}
	if expired := p.expireGrants(now); expired && !p.isGranted(w) {
		// Those who were called do not come: who is here goes first, or with few
		// workers nobody might ever find his own turn.
		p.removeWaiter(w)
		p.grantSlotTo(w, now)
	}
	if _, waits := p.queuePositions[w]; !waits && !p.isGranted(w) {
		p.enqueue(w)
	}
	p.grantSlotsIncludingCaller(now, w)
	delete(w.crawlLimiter.readyHosts, w.host) // it is here
	switch {
	case !p.isGranted(w), p.activeVisits >= p.minRequiredSlots: // of which there are less than when it was called
		until = p.estimateTurn(now, w)
	case now.Before(start):
		p.grantSlotTo(w, start)
		until = start
	default:
		p.clearGrant(w) // the slot is the visit's
		p.addActiveVisit(w.crawlLimiter)
		return now, true
	}
	p.extendCrawlRequirementUntil(w.crawlLimiter, until)
	return until, false
}

// hasWaiters reports whether anybody waits, or was called.
func (p *visitThrottle) hasWaiters() bool {
	return len(p.queuePositions) > 0 || len(p.earliestStartByGrantee) > 0
}

// addActiveVisit counts a visit of crawl that begins.
func (p *visitThrottle) addActiveVisit(crawl *Limiter) {
	p.activeVisits++
	p.adjustActiveOrGrantedVisits(crawl, 1)
	if c := p.findCrawlRequirement(crawl); c != nil {
		c.activeVisits++
	}
}

// removeActiveVisit counts a visit of crawl that is over, or is not made.
func (p *visitThrottle) removeActiveVisit(crawl *Limiter) {
	if c := p.findCrawlRequirement(crawl); c != nil && c.activeVisits > 0 {
		c.activeVisits--
		p.activeVisits--
		p.adjustActiveOrGrantedVisits(crawl, -1)
	}
}

// adjustActiveOrGrantedVisits counts n more workers of a crawl that visit hosts, or that hosts wait for.
func (p *visitThrottle) adjustActiveOrGrantedVisits(crawl *Limiter, n int) {
	if p.skipsCrawlsWithoutWorker {
		crawl.activeOrGrantedVisits += n
	}
}

// enqueue puts a waiter at the end of the line.
func (p *visitThrottle) enqueue(w crawlHostKey) {
	if p.queuePositions == nil {
		p.queuePositions = map[crawlHostKey]int{}
	}
	p.queuePositions[w] = p.headPosition + len(p.crawlQueue)
	p.crawlQueue = append(p.crawlQueue, w)
}

// grantSlots gives the slots that are free to those who have waited longest.
func (p *visitThrottle) grantSlots(now time.Time) {
	p.grantSlotsIncludingCaller(now, crawlHostKey{})
}

// grantSlotsIncludingCaller is grantSlots while caller, who waits, asks.
func (p *visitThrottle) grantSlotsIncludingCaller(now time.Time, caller crawlHostKey) {
	for i := 0; i < len(p.crawlQueue) && p.activeVisits+len(p.earliestStartByGrantee) < p.minRequiredSlots; {
		w := p.crawlQueue[i]
		position, waits := p.queuePositions[w]
		waits = waits && position == p.headPosition+i
		switch {
		case waits && p.skipsCrawlsWithoutWorker && !w.crawlLimiter.hasWorkerForAnotherHost() && (w != caller || now.Before(p.nextStart())):
			i++ // it keeps its place
			continue
		case waits:
			delete(p.queuePositions, w)
			p.grantSlot(w, timecmp.Later(now, p.nextStart()))
		}
		if i > 0 {
			i++
			continue
		}
		p.crawlQueue, p.headPosition = p.crawlQueue[1:], p.headPosition+1
	}
	if len(p.crawlQueue) > 2*len(p.queuePositions)+16 {
		p.compactQueue()
	}
}

// compactQueue takes those who have left out of the line.
func (p *visitThrottle) compactQueue() {
	i := -1
	p.crawlQueue = slices.DeleteFunc(p.crawlQueue, func(w crawlHostKey) bool {
		i++
		position, waits := p.queuePositions[w]
		return !waits || position != p.headPosition+i
	})
	for i, w := range p.crawlQueue {
		p.queuePositions[w] = p.headPosition + i
	}
}

// isGranted reports whether a slot is kept for w.
func (p *visitThrottle) isGranted(w crawlHostKey) bool { return !p.earliestStartByGrantee[w].IsZero() }

// grantSlotTo keeps a slot for w.
func (p *visitThrottle) grantSlotTo(w crawlHostKey, from time.Time) {
	if p.earliestStartByGrantee == nil {
		p.earliestStartByGrantee = map[crawlHostKey]time.Time{}
	}
	if !p.isGranted(w) {
		p.adjustActiveOrGrantedVisits(w.crawlLimiter, 1)
	}
	p.earliestStartByGrantee[w] = from
}

// clearGrant gives the slot back that is kept for w.
func (p *visitThrottle) clearGrant(w crawlHostKey) {
	if p.isGranted(w) {
		delete(p.earliestStartByGrantee, w)
		p.adjustActiveOrGrantedVisits(w.crawlLimiter, -1)
	}
}

// grantSlot keeps a slot for w, and tells it from when on it can come.
func (p *visitThrottle) grantSlot(w crawlHostKey, from time.Time) {
	p.grantSlotTo(w, from)
	p.extendCrawlRequirementUntil(w.crawlLimiter, from)
	w.crawlLimiter.addReadyHost(w.host, from)
}

// expireGrants takes back the turns of those who did not come.
func (p *visitThrottle) expireGrants(now time.Time) (expired bool) {
	for w, since := range p.earliestStartByGrantee {
		if now.Sub(since) > grantTimeout {
			p.clearGrant(w)
			expired = true
		}
	}
	return expired
}

// removeWaiter takes w out of the line, and its turn from it.
func (p *visitThrottle) removeWaiter(w crawlHostKey) {
	delete(p.queuePositions, w)
	if len(p.queuePositions) == 0 {
		p.crawlQueue = nil
	}
	if p.isGranted(w) {
		p.clearGrant(w)
		delete(w.crawlLimiter.readyHosts, w.host)
	}
}

// recordVisitEnd counts a visit of crawl that is over, which took so long.
func (p *visitThrottle) recordVisitEnd(crawl *Limiter, took time.Duration, end time.Time) {
	p.removeActiveVisit(crawl)
	took = max(0, took)
	if p.meanVisitDuration == 0 {
		p.meanVisitDuration = took
	}
	p.meanVisitDuration += (took - p.meanVisitDuration) / 8
	p.lastEnd = timecmp.Later(p.lastEnd, end)
	p.extendCrawlRequirementUntil(crawl, p.nextStart())
	p.postponeAndGrantSlots(end)
}

// postponeAndGrantSlots puts off those who were called while the rest has become longer, and
// calls who can come instead of the visit that has ended.
func (p *visitThrottle) postponeAndGrantSlots(now time.Time) {
	p.expireRequirementsAndUpdateLimits(now)
	start := p.nextStart()
	for w, from := range p.earliestStartByGrantee {
		if start.After(from) {
			p.grantSlot(w, start)
		}
	}
	p.grantSlots(now)
}

// removeCrawl forgets a crawl: its claim, those of it who wait, and visits that have
// been lost with their worker.
func (p *visitThrottle) removeCrawl(crawl *Limiter, now time.Time) {
	for _, waiting := range []iter.Seq[crawlHostKey]{maps.Keys(p.earliestStartByGrantee), maps.Keys(p.queuePositions)} {
		for w := range waiting {
			if w.crawlLimiter == crawl {
				p.removeWaiter(w)
			}
		}
	}
	if c := p.findCrawlRequirement(crawl); c != nil {
		if c.activeVisits > 0 {
			p.activeVisits, p.lastEnd = p.activeVisits-c.activeVisits, timecmp.Later(p.lastEnd, now)
			p.adjustActiveOrGrantedVisits(crawl, -c.activeVisits)
		}
		c.activeVisits, c.expires = 0, time.Time{}
	}
	p.postponeAndGrantSlots(now)
}

// estimateTurn returns when it will be the turn of who is in the line, or somewhat
// later: it is called in time.
func (p *visitThrottle) estimateTurn(now time.Time, w crawlHostKey) time.Time {
	ahead := 1 + max(0, p.queuePositions[w]-p.headPosition)/p.minRequiredSlots
	each := cmp.Or(p.meanVisitDuration, time.Second) + p.maxRequiredDelay
	wait := time.Duration(min(1.25*float64(ahead)*float64(each)+float64(time.Second), float64(maxWaitEstimate)))
	return timecmp.Later(now, p.nextStart()).Add(wait)
}

// isIdleAndDue reports whether no visit is under way, nobody waits, and the rest is over.
func (p *visitThrottle) isIdleAndDue(now time.Time) bool {
	return p.activeVisits == 0 && !p.hasWaiters() && !p.nextStart().After(now)
}

// A crawlPaceRequirement is what a crawl asks for. It holds while visits are out, and until then.
type crawlPaceRequirement struct {
	limiter      *Limiter
	delay        time.Duration
	slots        int
	activeVisits int
	expires      time.Time
}

// setRequiredDelayAndSlots notes what a crawl asks for from now on.
func (p *visitThrottle) setRequiredDelayAndSlots(crawl *Limiter, now time.Time, delay time.Duration, slots int) {
	c := p.findCrawlRequirement(crawl)
	if c == nil {
		p.crawlRequirements = append(p.crawlRequirements, crawlPaceRequirement{limiter: crawl})
		c = &p.crawlRequirements[len(p.crawlRequirements)-1]
	}
	c.delay, c.slots, c.expires = delay, slots, timecmp.Later(c.expires, now)
	p.expireRequirementsAndUpdateLimits(now)
}

// findCrawlRequirement returns the claim of a crawl, nil if it has none.
func (p *visitThrottle) findCrawlRequirement(crawl *Limiter) *crawlPaceRequirement {
	for i := range p.crawlRequirements {
		if p.crawlRequirements[i].limiter == crawl {
			return &p.crawlRequirements[i]
		}
	}
	return nil
}

// extendCrawlRequirementUntil keeps the claim of a crawl that can come again at a time.
func (p *visitThrottle) extendCrawlRequirementUntil(crawl *Limiter, at time.Time) {
	if c := p.findCrawlRequirement(crawl); c != nil {
		c.expires = timecmp.Later(c.expires, at.Add(grantTimeout))
	}
}

// expireRequirementsAndUpdateLimits forgets the claims of crawls that come no more: what is left rules, and
// if nothing is, what was said last.
func (p *visitThrottle) expireRequirementsAndUpdateLimits(now time.Time) {
	p.crawlRequirements = slices.DeleteFunc(p.crawlRequirements, func(c crawlPaceRequirement) bool { return c.activeVisits == 0 && c.expires.Before(now) })
	if len(p.crawlRequirements) == 0 {
		return
	}
	p.minRequiredSlots, p.maxRequiredDelay = math.MaxInt, 0
	for _, c := range p.crawlRequirements {
		p.minRequiredSlots, p.maxRequiredDelay = min(p.minRequiredSlots, c.slots), max(p.maxRequiredDelay, c.delay)
	}
}
