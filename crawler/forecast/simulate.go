package forecast

import (
	"container/heap"
	"net/netip"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/politeness"
)

// CrawlLimits holds the limits of a crawl as a whole. A zero field other than Start and Workers means
// no limit.
type CrawlLimits struct {
	Start            time.Time     // when the first request may begin
	Workers          int           // visits at a time; at least 1
	MaxPages         int64         // pages to visit
	MaxReceivedBytes int64         // bytes to receive, AlreadyReceivedBytes included
	MaxTime          time.Duration // from Start

	AlreadyReceivedBytes int64 // bytes received before the forecast begins

	RequestsPerSecond float64 // of all hosts together
	BytesPerSecond    float64 // of all hosts together

	IPConcurrency int           // visits at a time to one IP address
	IPDelay       time.Duration // from the end of a visit to an IP address to the start of the next
	LimitLoopback bool          // IPConcurrency and IPDelay apply to loopback addresses, too
}

// A HostWorkload is the remaining work at one host, and the pace of the visits.
type HostWorkload struct {
	Name          string                // as politeness.FinishedVisit.Host
	Due           time.Time             // the earliest time of the first request
	Health        politeness.HostHealth // after the last request
	VisitDuration time.Duration         // of a request
	BytesPerPage  int64                 // of the answer to a page
	Addr          netip.Addr            // the zero Addr: unknown, and not shared with other hosts
	Origins       []OriginWorkload

	// PolicyAt returns the policy for the host at the given time.
	PolicyAt func(time.Time) politeness.Policy
	// RobotsDelayAndNextAllowedTime returns, for the given time, the delay that the host's robots.txt
	// files set, and the first time from then on at which they allow visits.
	RobotsDelayAndNextAllowedTime func(time.Time) (rest time.Duration, opens time.Time)
}

// An OriginWorkload is the remaining pages of one origin, and the files that must be fresh for a visit.
type OriginWorkload struct {
	Pages  int64                // pages to visit
	Robots RefetchedControlFile // robots.txt
	TDMRep RefetchedControlFile // tdmrep.json, which is fetched after robots.txt
}

// A RefetchedControlFile is a file that must be fetched again, once it has expired, before the next
// page. After a fetch at least one visit follows, however short the TTL is.
type RefetchedControlFile struct {
	ExpiresAt time.Time     // when the present copy expires
	TTL       time.Duration // the lifetime of later copies; 0: the file never expires
	// RequestsPerFetch is the number of requests to fetch the file: one, and one more for each
	// redirect. Each is at the pace of the host. 0: one.
	RequestsPerFetch int64

	requestsMade int64 // requests of the present fetch
}

// finishRequest counts a request for the file, which ends at end, and reports whether it completes the
// fetch.
func (f *RefetchedControlFile) finishRequest(end time.Time) bool {
	if f.requestsMade++; f.requestsMade < f.RequestsPerFetch {
		return false
	}
	f.requestsMade, f.ExpiresAt = 0, end.Add(f.TTL)
	return true
}

// isDue reports whether the file must be fetched before the next page at the time at. visited says
// whether there was a visit since the last fetch.
func (f *RefetchedControlFile) isDue(at time.Time, visited bool) bool {
	return visited && f.TTL > 0 && !at.Before(f.ExpiresAt)
}

// An EndReason says why a forecast ends.
type EndReason uint8

// The reasons.
const (
	NothingLeft EndReason = iota // all pages are visited
	PageLimit                    // CrawlLimits.MaxPages is reached
	ByteLimit                    // CrawlLimits.MaxReceivedBytes is reached
	TimeLimit                    // CrawlLimits.MaxTime is reached
	NeverDue                     // no visit to the remaining pages is ever due, as when visit windows do not overlap
)

// A Result is what a crawl does at one host.
type Result struct {
	Pages                 int64     // pages visited
	RobotsRefetchRequests int64     // requests to fetch robots.txt files again
	TDMRepRefetchRequests int64     // requests to fetch tdmrep.json files again
	Bytes                 int64     // of pages
	PagesLeft             int64     // pages not visited
	LastVisitEnd          time.Time // the end of the last visit; zero: there was none
}

// horizon is how far a forecast looks ahead.
const horizon = 100 * 365 * 24 * time.Hour

// Simulate simulates the crawl of hosts to its end. It returns a Result for each host, in their order.
// It takes time in proportion to the number of requests, and memory in proportion to the number of
// hosts. It changes the Origins of hosts.
func (c CrawlLimits) Simulate(hosts []HostWorkload) ([]Result, EndReason) {
	p := newSimulation(c, hosts)
	end := NothingLeft
	for len(p.hostQueue) > 0 && end == NothingLeft {
		end = p.step()
	}
	results := make([]Result, len(hosts))
	for i := range p.hosts {
		results[i] = p.hosts[i].result
		results[i].PagesLeft = p.hosts[i].pagesLeft
	}
	return results, end
}

// A simulation is the state of a running forecast.
type simulation struct {
	CrawlLimits
	hosts               []hostState
	hostQueue           hostHeap // hosts with pages left that do not wait for an address, by due
	workerFreeTimes     slotFreeTimeHeap
	addresses           map[netip.Addr]*sharedAddress
	visitedPages        int64
	receivedBytes       int64     // CrawlLimits.AlreadyReceivedBytes included
	earliestNextRequest time.Time // by RequestsPerSecond
	bandwidthFreeAt     time.Time // the earliest time of the next request by BytesPerSecond
}

// A hostState is the state of a host in a simulation.
type hostState struct {
	*HostWorkload
	sharedAddress          *sharedAddress // nil: no limit of an address applies
	pagesLeft              int64
	due                    time.Time // the earliest time of the next visit
	health                 politeness.HostHealth
	visitsSinceLastDelay   int       // visits started since the host last waited for its delay
	dueAfterDelay          time.Time // when the delay after these visits ends
	originIndex            int       // of the next origin; Origins take turns
	visitedSinceRobots     bool      // there was a visit since the last fetch of the origin's robots.txt
	pageVisitedSinceTDMRep bool      // a page was visited since the last fetch of the origin's tdmrep.json
	result                 Result
	heapIndex              int // in simulation.hostQueue
}

// newSimulation returns a simulation at its start.
func newSimulation(c CrawlLimits, hosts []HostWorkload) *simulation {
	p := &simulation{
		CrawlLimits: c, hosts: make([]hostState, len(hosts)), addresses: map[netip.Addr]*sharedAddress{},
		receivedBytes: c.AlreadyReceivedBytes,
	}
	p.workerFreeTimes = slices.Repeat(slotFreeTimeHeap{c.Start}, max(c.Workers, 1))
	for i := range hosts {
		g := &p.hosts[i]
		*g = hostState{
			HostWorkload: &hosts[i], due: hosts[i].Due, health: hosts[i].Health,
			visitedSinceRobots: true, pageVisitedSinceTDMRep: true,
		}
		for _, o := range hosts[i].Origins {
			g.pagesLeft += o.Pages
		}
		if g.pagesLeft > 0 {
			g.heapIndex = len(p.hostQueue)
			p.hostQueue = append(p.hostQueue, g)
		}
		g.sharedAddress = p.getOrCreateSharedAddress(g.Addr)
	}
	heap.Init(&p.hostQueue)
	return p
}

// step makes the next visit, or moves its host to the later time at which it is due. It returns the
// reason to end the forecast, or NothingLeft to continue.
func (p *simulation) step() EndReason {
	g := p.hostQueue[0]
	// The visit starts when the host, a worker, and the limits of the crawl allow it.
	at := timecmp.Later(timecmp.Later(g.due, p.workerFreeTimes.nextFree()),
		timecmp.Later(p.earliestNextRequest, p.bandwidthFreeAt))
	if at.Sub(p.Start) > horizon {
		return NeverDue
	}
	if p.MaxTime > 0 && at.Sub(p.Start) >= p.MaxTime {
		return TimeLimit
	}
	// Outside its visit window the host does not wait for its address.
	if opens := g.nextOpen(at); opens.After(at) {
		p.endWaitForAddress(g)
		g.due = opens
		heap.Fix(&p.hostQueue, g.heapIndex)
		return NothingLeft
	}
	if !p.waitForAddressUnlessFree(g, at) {
		return NothingLeft
	}
	return p.makeVisit(g, at)
}

// nextOpen returns the first time from at on at which robots.txt and the policy allow visits to g.
func (g *hostState) nextOpen(at time.Time) time.Time {
	_, opens := g.RobotsDelayAndNextAllowedTime(at)
	return timecmp.Later(opens, g.PolicyAt(at).VisitWindow.NextOpen(at))
}

// makeVisit visits the next page of g, or the file that must be fetched before it. It returns the limit
// that rules the page out, or NothingLeft.
func (p *simulation) makeVisit(g *hostState, at time.Time) EndReason {
	// Choose what to visit. The limits apply to pages only.
	o := g.nextOrigin()
	forRobots := o.Robots.isDue(at, g.visitedSinceRobots)
	forTDMRep := !forRobots && o.TDMRep.isDue(at, g.pageVisitedSinceTDMRep)
	switch {
	case forRobots, forTDMRep:
	case p.MaxPages > 0 && p.visitedPages >= p.MaxPages:
		return PageLimit
	case p.MaxReceivedBytes > 0 && p.receivedBytes >= p.MaxReceivedBytes:
		return ByteLimit
	}
	// Make the visit.
	end := at.Add(g.VisitDuration)
	p.takeSlots(g, at, end)
	switch {
	case forRobots:
		g.visitedSinceRobots = !o.Robots.finishRequest(end)
		g.result.RobotsRefetchRequests++
	case forTDMRep:
		g.visitedSinceRobots, g.pageVisitedSinceTDMRep = true, !o.TDMRep.finishRequest(end)
		g.result.TDMRepRefetchRequests++
	default:
		g.visitedSinceRobots, g.pageVisitedSinceTDMRep = true, true
		o.Pages--
		g.pagesLeft--
		g.originIndex++
		p.countPage(g, end)
	}
	// Set when the host is due again.
	g.result.LastVisitEnd = timecmp.Later(g.result.LastVisitEnd, end)
	g.updateDueAfterVisit(at, end)
	if g.pagesLeft == 0 {
		heap.Remove(&p.hostQueue, g.heapIndex)
	} else {
		heap.Fix(&p.hostQueue, g.heapIndex)
	}
	return NothingLeft
}

// takeSlots occupies a worker and a slot of the address from at to end, and the crawl's request rate.
func (p *simulation) takeSlots(g *hostState, at, end time.Time) {
	p.workerFreeTimes.occupyNextFreeUntil(end)
	if g.sharedAddress != nil {
		g.sharedAddress.slotFreeTimes.occupyNextFreeUntil(end.Add(p.IPDelay))
		p.endWaitForAddress(g)
	}
	if p.RequestsPerSecond > 0 {
		p.earliestNextRequest = at.Add(secondsToDuration(1 / p.RequestsPerSecond))
	}
}

// countPage counts a page that ends at end. BytesPerSecond allows the bytes of one second in a burst.
func (p *simulation) countPage(g *hostState, end time.Time) {
	g.result.Pages++
	g.result.Bytes += g.BytesPerPage
	p.visitedPages++
	p.receivedBytes += g.BytesPerPage
	if p.BytesPerSecond > 0 {
		p.bandwidthFreeAt = timecmp.Later(p.bandwidthFreeAt, end.Add(-time.Second)).
			Add(secondsToDuration(float64(g.BytesPerPage) / p.BytesPerSecond))
	}
}

// nextOrigin returns the origin of the next visit. The origins with pages left take turns with each
// page, so that a robots.txt is followed by a page of the same origin.
func (g *hostState) nextOrigin() *OriginWorkload {
	for {
		if o := &g.Origins[g.originIndex%len(g.Origins)]; o.Pages > 0 {
			return o
		}
		g.originIndex++
	}
}

// updateDueAfterVisit sets when the host is due after a visit. A host with several slots starts that
// many visits together, and then waits for the longest of their delays.
func (g *hostState) updateDueAfterVisit(start, end time.Time) {
	delay, _ := g.RobotsDelayAndNextAllowedTime(end)
	rest := g.PolicyAt(end).NextVisit(politeness.FinishedVisit{
		Host: g.Name, Start: start, End: end, Status: 200, CrawlDelay: delay,
		Health: g.health,
	})
	g.health = rest.Health
	g.dueAfterDelay = timecmp.Later(g.dueAfterDelay, rest.Due)
	if g.visitsSinceLastDelay++; g.visitsSinceLastDelay < rest.HostSlots {
		return
	}
	g.due, g.visitsSinceLastDelay = g.dueAfterDelay, 0
}

func secondsToDuration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// A hostHeap is a heap of hosts by due, the earliest first.
type hostHeap []*hostState

// Len implements heap.Interface.
func (q hostHeap) Len() int { return len(q) }

// Less implements heap.Interface.
func (q hostHeap) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

// Swap implements heap.Interface.
func (q hostHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].heapIndex, q[j].heapIndex = i, j
}

// Push implements heap.Interface.
func (q *hostHeap) Push(x any) {
	g := x.(*hostState)
	g.heapIndex = len(*q)
	*q = append(*q, g)
}

// Pop implements heap.Interface.
func (q *hostHeap) Pop() any {
	last := len(*q) - 1
	g := (*q)[last]
	*q = (*q)[:last]
	return g
}

// A slotFreeTimeHeap is a heap of the times at which slots become free, the earliest first. The number
// of slots is constant.
type slotFreeTimeHeap []time.Time

// nextFree returns the time at which the first slot is free.
func (l slotFreeTimeHeap) nextFree() time.Time { return l[0] }

// occupyNextFreeUntil occupies the slot that is free first until the given time.
func (l slotFreeTimeHeap) occupyNextFreeUntil(until time.Time) {
	l[0] = until
	heap.Fix(&l, 0)
}

// Len implements heap.Interface.
func (l slotFreeTimeHeap) Len() int { return len(l) }

// Less implements heap.Interface.
func (l slotFreeTimeHeap) Less(i, j int) bool { return l[i].Before(l[j]) }

// Swap implements heap.Interface.
func (l slotFreeTimeHeap) Swap(i, j int) { l[i], l[j] = l[j], l[i] }

// Push implements heap.Interface. It is never called.
func (l slotFreeTimeHeap) Push(any) {}

// Pop implements heap.Interface. It is never called.
func (l slotFreeTimeHeap) Pop() any { return nil }
