package politeness

import (
	"maps"
	"net/netip"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
)

// SetWorkers says how many visits at a time the crawl can make: not many more
// hosts are kept for it, while other crawls wait for them. 0: any number.
func (l *Limiter) SetWorkers(n int) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	l.workerCount = n
}

// hostsPerWorker is for how many hosts a worker is kept busy: while it visits one, the
// rests of the others go by.
const hostsPerWorker = 4

// hasWorkerForAnotherHost reports whether the crawl has a worker for one more host. It requires the
// lock.
func (l *Limiter) hasWorkerForAnotherHost() bool {
	return l.workerCount <= 0 || l.activeOrGrantedVisits < hostsPerWorker*l.workerCount
}

// KnowsHost reports whether anything is remembered of a host. If not, no visit in
// this process has earned it a rest that is not over.
func (l *Limiter) KnowsHost(host string) bool {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	return l.sharedHosts.semaphoresByHost[host] != nil
}

// PostponeHost lets nobody visit a host before due, because of a visit that another
// process made, nor before the rest that is wished for has passed since ended,
// when its last visit may have ended.
func (l *Limiter) PostponeHost(now time.Time, host string, ended, due time.Time) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	p := l.sharedHosts.getOrCreateHost(now, host)
	p.lastEnd = timecmp.Later(p.lastEnd, ended)
	if due.After(p.dueAt) {
		p.dueAt, p.dueSetBy = due, nil
	}
	p.postponeAndGrantSlots(now)
}

// LeaveSharedHosts ends the part that the crawl has in what it shares: it does not wait
// for a turn any more, and slows nobody. Call it when no visit is under way; one
// of which nobody knows the end has ended now. The Limiter may be used again.
func (l *Limiter) LeaveSharedHosts(now time.Time) {
	l.lockSharedHosts()
	defer l.unlockAndWakeOtherCrawls()
	for _, p := range l.sharedHosts.semaphoresByHost {
		p.removeCrawl(l, now)
	}
	for _, p := range l.sharedHosts.semaphoresByAddr {
		p.removeCrawl(l, now)
	}
	maps.DeleteFunc(l.sharedHosts.addrOf, func(w crawlHostKey, _ netip.Addr) bool { return w.crawlLimiter == l })
	clear(l.readyHosts)
}
