package main

import (
	"container/heap"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A simulation is one run. Times are nanoseconds since its beginning.
type simulation struct {
	simulationOptions
	*web
	storeByPartition      []*memory.Store
	partitionChangeCounts []int // changes of each partition's queue, as storage/redis counts them
	processes             []process
	workers               []worker
	events                eventHeap // future events
	now                   int64
	result                *result
}

// A process has workers, and knows when each partition has its next due host.
type process struct {
	waitingWorkers            []int   // indexes of workers without a lease, in the order of their waits
	nextDueByPartition        []int64 // when the first host of each partition is due, as of the last call
	backoffUntilByPartition   []int64 // until then, the process leaves hosts that become due to others
	seenPartitionChangeCounts []int   // partitionChangeCounts as of the last call
	refreshes                 int     // number of calls of refreshChangedPartitions
	refreshedAt               int64   // time of the last one
	wakesAt                   int64   // time of the process's valid wake event; earlier events are void
}

// A worker has a lease, or waits for one.
type worker struct {
	processIndex int
	lease        storage.Lease // Token 0: the worker waits
	stateSince   int64         // since when it waits or visits
}

// An event is the end of a worker's visit, or the wake-up of a process.
type event struct {
	at           int64
	worker       int // index; -1: the event is a wake-up
	processIndex int
}

// An eventHeap is a heap.Interface with the earliest event first.
type eventHeap []event

func (e eventHeap) Len() int           { return len(e) }
func (e eventHeap) Less(i, j int) bool { return e[i].at < e[j].at }
func (e eventHeap) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *eventHeap) Push(x any)        { *e = append(*e, x.(event)) }
func (e *eventHeap) Pop() any {
	x := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return x
}

// startTime is the beginning of virtual time.
var startTime = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// timeAt converts a time of the simulation.
func timeAt(at int64) time.Time { return startTime.Add(time.Duration(at)) }

// newSimulation returns a simulation whose workers are divided equally among the processes.
func newSimulation(p simulationOptions, hosts, processes, partitions int) *simulation {
	c := &simulation{simulationOptions: p, web: newWeb(hosts, partitions, p.Seed),
		processes: make([]process, processes), workers: make([]worker, p.TotalWorkers)}
	for range partitions {
		c.storeByPartition = append(c.storeByPartition, memory.New(memory.Config{MaxURLs: math.MaxInt}))
	}
	c.partitionChangeCounts = make([]int, partitions)
	c.result = newEmptyResult(hosts, processes, partitions, p)
	for i := range c.processes {
		c.processes[i].nextDueByPartition, c.processes[i].backoffUntilByPartition = make([]int64, partitions),
			make([]int64, partitions)
		c.processes[i].seenPartitionChangeCounts = make([]int, partitions)
		c.processes[i].refreshedAt = math.MinInt64 / 2
	}
	for i := range c.workers {
		c.workers[i].processIndex = i % processes
	}
	return c
}

// run queues the seeds and processes events until the time is over.
func (c *simulation) run() (*result, error) {
	// All workers wait. The processes start at different moments.
	if err := c.seedHosts(); err != nil {
		return nil, err
	}
	for i := range c.workers {
		p := &c.processes[c.workers[i].processIndex]
		p.waitingWorkers = append(p.waitingWorkers, i)
	}
	for i := range c.processes {
		c.scheduleProcessWake(i, c.rnd.Int64N(int64(c.PartitionRefreshInterval)))
	}
	for len(c.events) > 0 && c.events[0].at < int64(c.WarmUp+c.MeasuredTime) {
		// Advance the time to the next event. The measurement begins after the warm-up.
		e := heap.Pop(&c.events).(event)
		if c.now < int64(c.WarmUp) && e.at >= int64(c.WarmUp) {
			c.startMeasuring()
		}
		c.now = e.at
		if e.worker < 0 && c.processes[e.processIndex].wakesAt != e.at {
			continue // the process has a newer wake event
		}
		// Each event frees a worker, or makes a host known to be due.
		if e.worker >= 0 {
			if err := c.endVisit(e.worker); err != nil {
				return nil, err
			}
		}
		if err := c.leaseForWaitingWorkers(e.processIndex); err != nil {
			return nil, err
		}
	}
	c.accountAllWorkers(int64(c.WarmUp + c.MeasuredTime))
	return c.result, nil
}

// startMeasuring discards the counts of the warm-up.
func (c *simulation) startMeasuring() {
	c.accountAllWorkers(int64(c.WarmUp))
	c.result.resetCounts()
}

// accountAllWorkers adds the time until at of all workers' current waits and visits.
func (c *simulation) accountAllWorkers(at int64) {
	for i := range c.workers {
		w := &c.workers[i]
		c.addWorkerTime(w, at, w.lease.Token == 0)
	}
}

// seedHosts queues the first page of each host. The hosts are due one after another, because hosts
// due at the same moment would be visited partition by partition.
func (c *simulation) seedHosts() error {
	for i := range c.sites {
		at := startTime.Add(time.Duration(i-len(c.sites)) * time.Microsecond)
		if _, _, err := c.storeByPartition[c.sites[i].partition].Lease(context.Background(), at,
			time.Hour, 0); err != nil {
			return err
		}
		u, err := pageURL(i, 0)
		if err != nil {
			return err
		}
		// Depth holds the index of the host.
		e := storage.Entry{URL: u, PriorityClass: storage.ClassEarly, Depth: i}
		if _, err := c.storeByPartition[c.sites[i].partition].Add(context.Background(),
			[]storage.Entry{e}, 0); err != nil {
			return err
		}
	}
	return nil
}

// scheduleProcessWake schedules the wake-up of a process, and voids its earlier one.
func (c *simulation) scheduleProcessWake(p int, at int64) {
	c.processes[p].wakesAt = at
	heap.Push(&c.events, event{at, -1, p})
}

// addWorkerTime ends the current wait or visit of a worker, and adds a wait to the result.
func (c *simulation) addWorkerTime(w *worker, until int64, waited bool) {
	if waited {
		c.result.waitedTime += time.Duration(until - w.stateSince)
	}
	w.stateSince = until
}

// leaseForWaitingWorkers takes leases for the waiting workers of a process, as Lease of
// storage/redis does: first from the partition whose host has been due for the longest time, as far
// as the process knows.
func (c *simulation) leaseForWaitingWorkers(number int) error {
	p := &c.processes[number]
	if len(p.waitingWorkers) == 0 {
		return nil
	}
	if c.now-p.refreshedAt >= int64(c.PartitionRefreshInterval) {
		if err := c.refreshChangedPartitions(p); err != nil {
			return err
		}
	}
	// Take leases until no worker waits, or no host is due.
	for len(p.waitingWorkers) > 0 {
		part := p.longestDuePartition(c.now)
		if part < 0 {
			break
		}
		leases, err := c.callLease(p, part, len(p.waitingWorkers))
		if err != nil {
			return err
		}
		for _, l := range leases {
			if err := c.startVisit(p.waitingWorkers[0], l); err != nil {
				return err
			}
			p.waitingWorkers = p.waitingWorkers[1:]
		}
	}
	if len(p.waitingWorkers) > 0 {
		c.scheduleProcessWake(number, min(p.refreshedAt+int64(c.PartitionRefreshInterval), p.earliestDue()))
	}
	return nil
}

// refreshesPerFullQuery says that one in this many refreshes queries all partitions.
const refreshesPerFullQuery = 20

// refreshChangedPartitions queries the partitions that other processes have changed.
func (c *simulation) refreshChangedPartitions(p *process) error {
	all := p.refreshes%refreshesPerFullQuery == 0
	p.refreshedAt = c.now
	p.refreshes++
	for part := range c.storeByPartition {
		if !all {
			c.result.callCountsOfPartition(part).changeCountReads++
		}
		if all || p.seenPartitionChangeCounts[part] != c.partitionChangeCounts[part] {
			if _, err := c.callLease(p, part, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// longestDuePartition returns the partition whose first host has been due for the longest time, or
// -1 if no host is due.
func (p *process) longestDuePartition(now int64) int {
	longest := -1
	for part, at := range p.nextDueByPartition {
		if at <= now && (longest < 0 || at < p.nextDueByPartition[longest]) {
			longest = part
		}
	}
	return longest
}

// earliestDue returns when the first host of any partition is due.
func (p *process) earliestDue() int64 {
	first := int64(math.MaxInt64)
	for _, at := range p.nextDueByPartition {
		first = min(first, at)
	}
	return first
}

// callLease takes up to maxLeases leases from a partition, or with 0 only learns when its next host
// is due. It counts the call as lease.lua. After a call without a lease, the process leaves the
// partition's next hosts to others for a random time.
func (c *simulation) callLease(p *process, part, maxLeases int) ([]storage.Lease, error) {
	leases, err := c.leaseFromPartition(p, part, maxLeases)
	switch {
	case maxLeases == 0:
		c.result.callCountsOfPartition(part).leaseQueries++
	case len(leases) == 0:
		c.result.callCountsOfPartition(part).emptyLeases++
		p.backoffUntilByPartition[part] = c.now + int64(c.PartitionRefreshInterval) + c.rnd.Int64N(
			int64(c.PartitionRefreshInterval))
		p.raisePartitionNextDueToBackoff(part, c.now)
	default:
		c.result.callCountsOfPartition(part).nonEmptyLeases++
		c.result.callCountsOfPartition(part).leasedURLs += len(leases)
	}
	return leases, err
}

// leaseFromPartition takes leases from a partition, and records when its next host is due.
func (c *simulation) leaseFromPartition(p *process, part, maxLeases int) ([]storage.Lease, error) {
	leases, next, err := c.storeByPartition[part].Lease(context.Background(), timeAt(c.now), time.Hour, maxLeases)
	if len(leases) > 0 {
		c.partitionChangeCounts[part]++
	}
	p.seenPartitionChangeCounts[part] = c.partitionChangeCounts[part]
	switch {
	case err != nil:
		return nil, err
	case next.RemainingWorkKind == storage.RemainingNone:
		p.nextDueByPartition[part] = math.MaxInt64
	default:
		p.nextDueByPartition[part] = next.Until.Sub(startTime).Nanoseconds()
		p.raisePartitionNextDueToBackoff(part, c.now)
	}
	return leases, nil
}

// raisePartitionNextDueToBackoff makes the process leave a partition's next host to others until
// the end of its back-off.
func (p *process) raisePartitionNextDueToBackoff(part int, now int64) {
	if p.nextDueByPartition[part] > now && p.nextDueByPartition[part] < math.MaxInt64 {
		p.nextDueByPartition[part] = max(p.nextDueByPartition[part], p.backoffUntilByPartition[part])
	}
}

// startVisit starts the visit of a worker with lease l. It fails if the host is not due yet.
func (c *simulation) startVisit(number int, l storage.Lease) error {
	w := &c.workers[number]
	c.addWorkerTime(w, c.now, true)
	w.lease = l
	s := &c.sites[l.Depth]
	due := l.HostState.Due
	if due.Before(startTime) {
		due = startTime
	}
	late := timeAt(c.now).Sub(due)
	if late < 0 {
		return fmt.Errorf("%v is visited %v before its host is due", l.URL, -late)
	}
	c.result.addLateness(late)
	// A long visit renews its lease three times per lease time.
	took := c.randomVisitDuration(s)
	c.result.callCountsOfPartition(int(s.partition)).renewals += int(took / (c.LeaseTime / 3))
	heap.Push(&c.events, event{c.now + int64(took), number, w.processIndex})
	return nil
}

// endVisit ends the visit of a worker, which then waits for its next lease.
func (c *simulation) endVisit(number int) error {
	w := &c.workers[number]
	l := w.lease
	w.lease = storage.Lease{}
	c.addWorkerTime(w, c.now, false)
	// Decide the outcome: a failure, a robots.txt or a page.
	s := &c.sites[l.Depth]
	delay := time.Duration(s.delayMillis) * time.Millisecond
	ack := storage.Ack{Lease: l, HostState: &storage.HostState{Due: timeAt(c.now).Add(delay), LostVisitDelay: delay}}
	switch {
	case s.isDead:
		s.consecutiveFailures++
		ack.Outcome, ack.NotBefore = storage.RetryAt, timeAt(c.now).Add(time.Minute<<s.consecutiveFailures)
		ack.HostState.Due = ack.NotBefore
		if s.consecutiveFailures == maxAttempts {
			ack.Outcome = storage.Drop
		}
	case !s.robotsFetched: // the visit was to its robots.txt
		s.robotsFetched = true
		ack.Outcome = storage.Requeue
		c.result.callCountsOfPartition(int(s.partition)).notes++
	default:
		if err := c.addLinks(l.Depth, s); err != nil {
			return err
		}
		c.result.countPage(number)
	}
	// Ack. The process learns from the ack when the partition's next host is due.
	part := c.storeByPartition[s.partition]
	if err := part.Ack(context.Background(), []storage.Ack{ack}); err != nil {
		return fmt.Errorf("%v: %w", l.URL, err)
	}
	c.result.callCountsOfPartition(int(s.partition)).acks++
	c.partitionChangeCounts[s.partition]++
	p := &c.processes[w.processIndex]
	p.waitingWorkers = append(p.waitingWorkers, number)
	_, err := c.leaseFromPartition(p, int(s.partition), 0)
	return err
}

// addLinks adds the links of a page, with one call for each partition.
func (c *simulation) addLinks(host int, s *site) error {
	// New pages of the site. The calls also carry known links, which only count.
	calls := map[int][]storage.Entry{int(s.partition): nil}
	for range newLinksPerPage {
		if s.discoveredPages < s.pageCount {
			u, err := pageURL(host, s.discoveredPages)
			if err != nil {
				return err
			}
			s.discoveredPages++
			calls[int(s.partition)] = append(calls[int(s.partition)],
				storage.Entry{URL: u, PriorityClass: storage.ClassNormal, Depth: host})
		}
	}
	c.result.callCountsOfPartition(int(s.partition)).addedURLs += internalLinks
	// Links to the first pages of other sites.
	for _, other := range c.pickLinkedSites() {
		u, err := pageURL(other, 0)
		if err != nil {
			return err
		}
		part := int(c.sites[other].partition)
		calls[part] = append(calls[part], storage.Entry{URL: u, PriorityClass: storage.ClassNormal, Depth: other})
		c.result.callCountsOfPartition(part).addedURLs++
	}
	for part, entries := range calls {
		results, err := c.storeByPartition[part].Add(context.Background(), entries, 0)
		if err != nil {
			return err
		}
		if storage.CountAdded(results) > 0 {
			c.partitionChangeCounts[part]++
		}
		c.result.callCountsOfPartition(part).adds++
	}
	return nil
}
