package forecast

import (
	"container/heap"
	"net/netip"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/politeness"
)

// A CrawlLimits is what bounds a crawl as a whole. Zero is no limit, but for Workers.
type CrawlLimits struct {
	Start            time.Time     // when the first request may begin
	Workers          int           // visits at a time; at least 1
	MaxPages         int64         // to visit
	MaxReceivedBytes int64         // to receive, those of AlreadyReceivedBytes too
	MaxTime          time.Duration // from Start

	AlreadyReceivedBytes int64 // bytes, before the forecast begins

	RequestsPerSecond float64 // of all hosts together
	BytesPerSecond    float64 // likewise

	IPConcurrency int           // visits at a time of one address
	IPDelay       time.Duration // from the end of a visit of an address to the start of the next
	LimitLoopback bool          // the two hold for loopback addresses, too
}

// A HostWorkload is what is left to visit of one host, and at what pace.
type HostWorkload struct {
	Name                string        // as politeness.FinishedVisit.Host
	Due                 time.Time     // no request begins before
	ConsecutiveFailures int           // failures in a row, as back-off counts them
	VisitDuration       time.Duration // how long a request takes
	BytesPerPage        int64         // of the answer to a page
	Addr                netip.Addr    // zero: not known, and nobody shares it
	Origins             []OriginWorkload

	// PolicyAt returns the policy for the host at a moment.
	PolicyAt func(time.Time) politeness.Policy
	// RobotsDelayAndNextAllowedTime returns the rest that its robots.txt files ask for at a moment, and when
	// they let visits begin, from that moment on.
	RobotsDelayAndNextAllowedTime func(time.Time) (rest time.Duration, opens time.Time)
}

// An OriginWorkload is the pages of one origin of a host, and what comes before them.
type OriginWorkload struct {
	Pages  int64                // to visit
	Robots RefetchedControlFile // robots.txt
	TDMRep RefetchedControlFile // tdmrep.json, which comes after it
}

// A RefetchedControlFile is one that must be asked for again when it is too old, before the next page.
// However short it holds, it does for the visit after its own.
type RefetchedControlFile struct {
	ExpiresAt time.Time     // it is asked for again before the first visit after it
	TTL       time.Duration // for how long it holds then; 0: for good
	// RequestsPerFetch is how many it takes to have it: one more for each redirect, each at
	// the pace of the host. 0: one.
	RequestsPerFetch int64

	requestsMade int64 // of them, this time
}

// finishRequest makes one of the requests for the file, which ends at end, and reports whether
// it was the last.
func (f *RefetchedControlFile) finishRequest(end time.Time) bool {
	if f.requestsMade++; f.requestsMade < f.RequestsPerFetch {
		return false
	}
	f.requestsMade, f.ExpiresAt = 0, end.Add(f.TTL)
	return true
}

// isDue reports whether the file comes first at a moment. served says whether there was
// a visit since it was asked for last.
func (f *RefetchedControlFile) isDue(at time.Time, visited bool) bool {
	return visited && f.TTL > 0 && !at.Before(f.ExpiresAt)
}

// An EndReason says why a forecast goes no further.
type EndReason uint8

// Ends.
const (
	NothingLeft EndReason = iota // nothing is left to visit
	PageLimit                    // a limit of the crawl is reached
	ByteLimit
	TimeLimit
	NeverDue // what is left is never visited: the hours that are open do not meet
)

// A Result is what a crawl does at one host, or at all.
type Result struct {
	Pages                 int64     // that are visited
	RobotsRefetchRequests int64     // robots.txt files asked for again
	TDMRepRefetchRequests int64     // likewise, tdmrep.json files
	Bytes                 int64     // of pages
	PagesLeft             int64     // pages that are not visited
	LastVisitEnd          time.Time // the end of the last visit
}

// horizon is how far a forecast looks ahead.
const horizon = 100 * 365 * 24 * time.Hour

// Simulate plays the crawl of hosts to its end, and returns what it does at each of
// them. It takes time in proportion to the requests, and memory to the hosts.
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

// A simulation is a forecast in the making.
type simulation struct {
	CrawlLimits
	hosts               []hostState
	hostQueue           hostHeap // of those that have pages left, by when they are due
	workerFreeTimes     slotFreeTimeHeap
	addresses           map[netip.Addr]*sharedAddress
	visitedPages        int64
	receivedBytes       int64
	earliestNextRequest time.Time // no request begins before: RequestsPerSecond
	bandwidthFreeAt     time.Time // likewise: BytesPerSecond
}

// A hostState is a host that is played.
type hostState struct {
	*HostWorkload
	sharedAddress          *sharedAddress // nil: nobody shares it
	pagesLeft              int64          // pages
	due                    time.Time
	consecutiveFailures    int
	visitsSinceLastDelay   int       // visits that have begun since the last rest
	dueAfterDelay          time.Time // due after the rest that these earn
	originIndex            int       // of Origins
	visitedSinceRobots     bool      // there was a visit since the last robots.txt of that origin
	pageVisitedSinceTDMRep bool      // a page since its last tdmrep.json
	result                 Result
	heapIndex              int // in the queue
}

func newSimulation(c CrawlLimits, hosts []HostWorkload) *simulation {
	p := &simulation{CrawlLimits: c, hosts: make([]hostState, len(hosts)), addresses: map[netip.Addr]*sharedAddress{}, receivedBytes: c.AlreadyReceivedBytes}
	p.workerFreeTimes = slices.Repeat(slotFreeTimeHeap{c.Start}, max(c.Workers, 1))
	for i := range hosts {
		g := &p.hosts[i]
		*g = hostState{HostWorkload: &hosts[i], due: hosts[i].Due, consecutiveFailures: hosts[i].ConsecutiveFailures, visitedSinceRobots: true, pageVisitedSinceTDMRep: true}
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

// step makes the next visit, or finds out that its host is due later.
func (p *simulation) step() EndReason {
	g := p.hostQueue[0]
	at := timecmp.Later(timecmp.Later(g.due, p.workerFreeTimes.nextFree()), timecmp.Later(p.earliestNextRequest, p.bandwidthFreeAt))
	if at.Sub(p.Start) > horizon {
		return NeverDue
	}
	if p.MaxTime > 0 && at.Sub(p.Start) >= p.MaxTime {
		return TimeLimit
	}
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

// nextOpen returns when g is within its hours, from at on.
func (g *hostState) nextOpen(at time.Time) time.Time {
	_, opens := g.RobotsDelayAndNextAllowedTime(at)
	return timecmp.Later(opens, g.PolicyAt(at).VisitWindow.NextOpen(at))
}

// makeVisit visits the next page of g, or the file that must come first.
func (p *simulation) makeVisit(g *hostState, at time.Time) EndReason {
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
	g.result.LastVisitEnd = timecmp.Later(g.result.LastVisitEnd, end)
	g.updateDueAfterVisit(at, end)
	if g.pagesLeft == 0 {
		heap.Remove(&p.hostQueue, g.heapIndex)
	} else {
		heap.Fix(&p.hostQueue, g.heapIndex)
	}
	return NothingLeft
}

// takeSlots takes what a visit needs from at to end.
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

// countPage counts a page. As many bytes as flow in a second may come at once.
func (p *simulation) countPage(g *hostState, end time.Time) {
	g.result.Pages++
	g.result.Bytes += g.BytesPerPage
	p.visitedPages++
	p.receivedBytes += g.BytesPerPage
	if p.BytesPerSecond > 0 {
		p.bandwidthFreeAt = timecmp.Later(p.bandwidthFreeAt, end.Add(-time.Second)).Add(secondsToDuration(float64(g.BytesPerPage) / p.BytesPerSecond))
	}
}

// nextOrigin returns whose turn it is: those with pages left take turns, and a
// robots.txt is followed by a page of its own.
func (g *hostState) nextOrigin() *OriginWorkload {
	for {
		if o := &g.Origins[g.originIndex%len(g.Origins)]; o.Pages > 0 {
			return o
		}
		g.originIndex++
	}
}

// updateDueAfterVisit has the host rest after a visit. As many as its slots begin together,
// and rest together.
func (g *hostState) updateDueAfterVisit(start, end time.Time) {
	delay, _ := g.RobotsDelayAndNextAllowedTime(end)
	rest := g.PolicyAt(end).NextVisit(politeness.FinishedVisit{Host: g.Name, Start: start, End: end, Status: 200, CrawlDelay: delay, ConsecutiveFailures: g.consecutiveFailures})
	g.consecutiveFailures = rest.ConsecutiveFailures
	g.dueAfterDelay = timecmp.Later(g.dueAfterDelay, rest.Due)
	if g.visitsSinceLastDelay++; g.visitsSinceLastDelay < rest.HostSlots {
		return
	}
	g.due, g.visitsSinceLastDelay = g.dueAfterDelay, 0
}

func secondsToDuration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// A hostHeap is hosts, the one that has been due longest first. It is a heap.
type hostHeap []*hostState

// Len is part of heap.Interface.
func (q hostHeap) Len() int { return len(q) }

// Less is part of heap.Interface.
func (q hostHeap) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

// Swap is part of heap.Interface.
func (q hostHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].heapIndex, q[j].heapIndex = i, j
}

// Push is part of heap.Interface.
func (q *hostHeap) Push(x any) {
	g := x.(*hostState)
	g.heapIndex = len(*q)
	*q = append(*q, g)
}

// Pop is part of heap.Interface.
func (q *hostHeap) Pop() any {
	last := len(*q) - 1
	g := (*q)[last]
	*q = (*q)[:last]
	return g
}

// Lanes are when each of so many that work side by side is free, the first that
// is free in front. It is a heap.
type slotFreeTimeHeap []time.Time

// nextFree returns when one is free.
func (l slotFreeTimeHeap) nextFree() time.Time { return l[0] }

// occupyNextFreeUntil occupies the first that is free, until then.
func (l slotFreeTimeHeap) occupyNextFreeUntil(until time.Time) {
	l[0] = until
	heap.Fix(&l, 0)
}

// Len is part of heap.Interface.
func (l slotFreeTimeHeap) Len() int { return len(l) }

// Less is part of heap.Interface.
func (l slotFreeTimeHeap) Less(i, j int) bool { return l[i].Before(l[j]) }

// Swap is part of heap.Interface.
func (l slotFreeTimeHeap) Swap(i, j int) { l[i], l[j] = l[j], l[i] }

// Push is part of heap.Interface: the number of lanes never changes.
func (l slotFreeTimeHeap) Push(any) {}

// Pop is part of heap.Interface: see Push.
func (l slotFreeTimeHeap) Pop() any { return nil }
