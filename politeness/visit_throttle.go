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

// grantTimeout is how long a granted slot is reserved after its earliest start, and how long the
// requirement of a crawl counts after the crawl could have visited again.
const grantTimeout = 10 * time.Second

// maxWaitEstimate caps the wait given to a queued crawl, because its wake-up can be lost in a
// crash.
const maxWaitEstimate = 10 * time.Minute

// A visitThrottle limits the visits to one host, which several crawls visit, or to one IP address,
// which several hosts share. It has slots for concurrent visits, a delay between visits, and a
// waitlist. A visit that finds no free slot joins the waitlist. When its turn comes, the throttle
// grants it a slot, which stays reserved for it, and its Limiter is notified. Each visit therefore
// wakes one waiter, however many there are, and the waiters take turns. SharedHosts.mu guards all
// fields.
type visitThrottle struct {
	crawlRequirements []crawlPaceRequirement // of the crawls that visit at the same time
	minRequiredSlots  int                    // slots: the fewest of crawlRequirements
	maxRequiredDelay  time.Duration          // delay between visits: the longest of crawlRequirements
	// skipsCrawlsWithoutWorker has grants pass over crawls without a free worker: see
	// Limiter.SetWorkers. It is set for hosts.
	skipsCrawlsWithoutWorker bool

	activeVisits int       // visits under way
	lastEnd      time.Time // end of the last visit
	dueAt        time.Time // earliest start of the next visit, from NextVisit.Due
	dueSetBy     *Limiter  // crawl whose visit set dueAt; nil: another process
	learnedPace  LearnedPace

	// crawlQueue is the waitlist, the longest wait first. An element whose position is not in
	// queuePositions has left; compactQueue removes it.
	crawlQueue             []crawlHostKey
	headPosition           int                        // position of crawlQueue[0]; positions only grow
	queuePositions         map[crawlHostKey]int       // position of each waiter
	earliestStartByGrantee map[crawlHostKey]time.Time // granted slots, and when their visits may start
	meanVisitDuration      time.Duration              // moving mean; 0 for hosts, whose visits are not timed
}

// A crawlHostKey identifies a waiter: one crawl that wants to visit one host.
type crawlHostKey struct {
	crawlLimiter *Limiter
	host         string
}

// nextStart returns when the next visit may begin.
func (p *visitThrottle) nextStart() time.Time {
	return timecmp.Later(p.dueAt, p.lastEnd.Add(p.maxRequiredDelay))
}

// acquireOrEnqueue takes a slot for a visit of w, whose crawl has set its requirement. If no slot
// is free, it adds w to the waitlist and returns false and when to try again. If w is granted a
// slot before, TakeGrantedTurns reports it.
func (p *visitThrottle) acquireOrEnqueue(now time.Time, w crawlHostKey) (until time.Time, ok bool) {
	start := p.nextStart()
	// If no other waiter precedes w, it takes a free slot at once.
	if !p.hasWaiters() && p.activeVisits < p.minRequiredSlots && !now.Before(start) {
		p.addActiveVisit(w.crawlLimiter)
		return now, true
	}
	if expired := p.expireGrants(now); expired && !p.isGranted(w) {
		// The grantees did not come, so w goes first. Otherwise, with few workers, grants might
		// expire again and again before their crawls use them.
		p.removeWaiter(w)
		p.grantSlotTo(w, now)
	}
	if _, waits := p.queuePositions[w]; !waits && !p.isGranted(w) {
		p.enqueue(w)
	}
	// Grant the free slots in the order of the waitlist. w may get one of them.
	p.grantSlotsIncludingCaller(now, w)
	delete(w.crawlLimiter.readyHosts, w.host) // w needs no notification
	switch {
	case !p.isGranted(w), p.activeVisits >= p.minRequiredSlots: // the slots may have become fewer since the grant
		until = p.estimateTurn(now, w)
	case now.Before(start):
		p.grantSlotTo(w, start)
		until = start
	default:
		p.clearGrant(w) // the visit uses the slot
		p.addActiveVisit(w.crawlLimiter)
		return now, true
	}
	p.extendCrawlRequirementUntil(w.crawlLimiter, until)
	return until, false
}

// hasWaiters reports whether the waitlist or the grants hold a waiter.
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

// removeActiveVisit uncounts a visit of crawl that has ended or is not made.
func (p *visitThrottle) removeActiveVisit(crawl *Limiter) {
	if c := p.findCrawlRequirement(crawl); c != nil && c.activeVisits > 0 {
		c.activeVisits--
		p.activeVisits--
		p.adjustActiveOrGrantedVisits(crawl, -1)
	}
}

// adjustActiveOrGrantedVisits adds n to the number of workers that the visits and the grants of
// crawl need. It counts hosts only.
func (p *visitThrottle) adjustActiveOrGrantedVisits(crawl *Limiter, n int) {
	if p.skipsCrawlsWithoutWorker {
		crawl.activeOrGrantedVisits += n
	}
}

// enqueue appends w to the waitlist.
func (p *visitThrottle) enqueue(w crawlHostKey) {
	if p.queuePositions == nil {
		p.queuePositions = map[crawlHostKey]int{}
	}
	p.queuePositions[w] = p.headPosition + len(p.crawlQueue)
	p.crawlQueue = append(p.crawlQueue, w)
}

// grantSlots grants the free slots to those that have waited longest.
func (p *visitThrottle) grantSlots(now time.Time) {
	p.grantSlotsIncludingCaller(now, crawlHostKey{})
}

// grantSlotsIncludingCaller implements grantSlots during a call for caller, which has a free worker
// if the visit can begin now.
func (p *visitThrottle) grantSlotsIncludingCaller(now time.Time, caller crawlHostKey) {
	for i := 0; i < len(p.crawlQueue) && p.activeVisits+len(p.earliestStartByGrantee) < p.minRequiredSlots; {
		w := p.crawlQueue[i]
		position, waits := p.queuePositions[w]
		waits = waits && position == p.headPosition+i
		switch {
		// A crawl without a free worker keeps its place in the waitlist.
		case waits && p.skipsCrawlsWithoutWorker && !w.crawlLimiter.hasWorkerForAnotherHost() &&
			(w != caller || now.Before(p.nextStart())):
			i++
			continue
		case waits:
			delete(p.queuePositions, w)
			p.grantSlot(w, timecmp.Later(now, p.nextStart()))
		}
		// Remove the element if it is the first one. An element behind a waiter that keeps its
		// place is only skipped; compactQueue removes it later.
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

// compactQueue removes the elements of crawlQueue that no longer wait.
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

// isGranted reports whether a slot is reserved for w.
func (p *visitThrottle) isGranted(w crawlHostKey) bool { return !p.earliestStartByGrantee[w].IsZero() }

// grantSlotTo reserves a slot for w, whose visit may start at from.
func (p *visitThrottle) grantSlotTo(w crawlHostKey, from time.Time) {
	if p.earliestStartByGrantee == nil {
		p.earliestStartByGrantee = map[crawlHostKey]time.Time{}
	}
	if !p.isGranted(w) {
		p.adjustActiveOrGrantedVisits(w.crawlLimiter, 1)
	}
	p.earliestStartByGrantee[w] = from
}

// clearGrant ends the reservation of a slot for w, if there is one.
func (p *visitThrottle) clearGrant(w crawlHostKey) {
	if p.isGranted(w) {
		delete(p.earliestStartByGrantee, w)
		p.adjustActiveOrGrantedVisits(w.crawlLimiter, -1)
	}
}

// grantSlot reserves a slot for w, and notifies its crawl that the visit may start at from.
func (p *visitThrottle) grantSlot(w crawlHostKey, from time.Time) {
	p.grantSlotTo(w, from)
	p.extendCrawlRequirementUntil(w.crawlLimiter, from)
	w.crawlLimiter.addReadyHost(w.host, from)
}

// expireGrants clears the grants that were not used within grantTimeout of their earliest start.
func (p *visitThrottle) expireGrants(now time.Time) (expired bool) {
	for w, since := range p.earliestStartByGrantee {
		if now.Sub(since) > grantTimeout {
			p.clearGrant(w)
			expired = true
		}
	}
	return expired
}

// removeWaiter removes w from the waitlist and clears its grant.
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

// recordVisitEnd counts a visit of crawl that has ended. took is its duration, or 0 if it was not
// measured.
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

// postponeAndGrantSlots notifies grantees whose earliest start is later than they know, and grants
// free slots.
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

// removeCrawl removes crawl's waiters, its requirement, and visits whose end was never reported.
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

// estimateTurn returns by when w has probably had its turn. It estimates late, because a grant
// wakes w in time. The result is at most maxWaitEstimate after now or the next start, whichever is
// later.
func (p *visitThrottle) estimateTurn(now time.Time, w crawlHostKey) time.Time {
	ahead := 1 + max(0, p.queuePositions[w]-p.headPosition)/p.minRequiredSlots
	each := cmp.Or(p.meanVisitDuration, time.Second) + p.maxRequiredDelay
	wait := time.Duration(min(1.25*float64(ahead)*float64(each)+float64(time.Second), float64(maxWaitEstimate)))
	return timecmp.Later(now, p.nextStart()).Add(wait)
}

// isIdleAndDue reports whether no visit is under way, the waitlist is empty, and the rest is over.
func (p *visitThrottle) isIdleAndDue(now time.Time) bool {
	return p.activeVisits == 0 && !p.hasWaiters() && !p.nextStart().After(now)
}

// A crawlPaceRequirement is the delay and the number of slots that a crawl requires of a host or an
// address. It counts while visits of the crawl are under way, and until expires.
type crawlPaceRequirement struct {
	limiter      *Limiter
	delay        time.Duration // between visits
	slots        int           // concurrent visits
	activeVisits int           // visits of this crawl under way
	expires      time.Time
}

// setRequiredDelayAndSlots sets what crawl requires from now on.
func (p *visitThrottle) setRequiredDelayAndSlots(crawl *Limiter, now time.Time, delay time.Duration, slots int) {
	c := p.findCrawlRequirement(crawl)
	if c == nil {
		p.crawlRequirements = append(p.crawlRequirements, crawlPaceRequirement{limiter: crawl})
		c = &p.crawlRequirements[len(p.crawlRequirements)-1]
	}
	c.delay, c.slots, c.expires = delay, slots, timecmp.Later(c.expires, now)
	p.expireRequirementsAndUpdateLimits(now)
}

// findCrawlRequirement returns the requirement of crawl, nil if there is none. The pointer is valid
// until crawlRequirements changes.
func (p *visitThrottle) findCrawlRequirement(crawl *Limiter) *crawlPaceRequirement {
	for i := range p.crawlRequirements {
		if p.crawlRequirements[i].limiter == crawl {
			return &p.crawlRequirements[i]
		}
	}
	return nil
}

// extendCrawlRequirementUntil keeps the requirement of crawl, which can visit again at the given
// time, until grantTimeout after it.
func (p *visitThrottle) extendCrawlRequirementUntil(crawl *Limiter, at time.Time) {
	if c := p.findCrawlRequirement(crawl); c != nil {
		c.expires = timecmp.Later(c.expires, at.Add(grantTimeout))
	}
}

// expireRequirementsAndUpdateLimits drops the requirements that have expired, and recomputes the
// slots and the delay from the others. Without any requirement the last values stay.
func (p *visitThrottle) expireRequirementsAndUpdateLimits(now time.Time) {
	p.crawlRequirements = slices.DeleteFunc(p.crawlRequirements, func(c crawlPaceRequirement) bool {
		return c.activeVisits == 0 && c.expires.Before(now)
	})
	if len(p.crawlRequirements) == 0 {
		return
	}
	p.minRequiredSlots, p.maxRequiredDelay = math.MaxInt, 0
	for _, c := range p.crawlRequirements {
		p.minRequiredSlots, p.maxRequiredDelay = min(p.minRequiredSlots, c.slots), max(p.maxRequiredDelay, c.delay)
	}
}
