package main

import (
	"container/heap"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// A crawl is one run. Times are nanoseconds since it began.
type crawl struct {
	plan
	*web
	parts     []*storage.Memory
	changes   []int // of each partition
	processes []process
	workers   []worker
	events    events
	now       int64
	result    *result
}

// A process has workers in line for a URL, and knows when partitions have their next.
type process struct {
	waitingWorkers []int   // workers that wait
	turns          []int64 // when the first host of each partition is due, as it was said last
	shy            []int64 // until then hosts of it that come due are left to others
	seen           []int   // changes of each partition, when that was said
	looks          int     // how often it looked at all
	at             int64   // when it did so last
	wakes          int64   // when it does something again, at the latest
}

// A worker has a lease in hand, or waits.
type worker struct {
	of    int // process
	lease storage.Lease
	since int64 // that it waits, or visits
}

// An event is that a visit ends, or that a process looks again.
type event struct {
	at     int64
	worker int // -1: none
	wakes  int // process
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	x := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return x
}

// begin is when virtual time begins.
var begin = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func moment(at int64) time.Time { return begin.Add(time.Duration(at)) }

func newCrawl(p plan, hosts, processes, partitions int) *crawl {
	c := &crawl{plan: p, web: newWeb(hosts, partitions, p.Seed), processes: make([]process, processes), workers: make([]worker, p.Workers)}
	for range partitions {
		c.parts = append(c.parts, storage.NewMemory(storage.Config{MaxURLs: math.MaxInt}))
	}
	c.changes = make([]int, partitions)
	c.result = newResult(hosts, processes, partitions, p)
	for i := range c.processes {
		c.processes[i].turns, c.processes[i].shy = make([]int64, partitions), make([]int64, partitions)
		c.processes[i].seen = make([]int, partitions)
		c.processes[i].at = math.MinInt64 / 2
	}
	for i := range c.workers {
		c.workers[i].of = i % processes
	}
	return c
}

// run seeds the hosts, and has the workers work until the time is over.
func (c *crawl) run() (*result, error) {
	if err := c.seed(); err != nil {
		return nil, err
	}
	for i := range c.workers {
		p := &c.processes[c.workers[i].of]
		p.waitingWorkers = append(p.waitingWorkers, i)
	}
	for i := range c.processes { // they were not started at the same moment
		c.wake(i, c.chance.Int64N(int64(c.Refresh)))
	}
	for len(c.events) > 0 && c.events[0].at < int64(c.Warm+c.Time) {
		e := heap.Pop(&c.events).(event)
		if c.now < int64(c.Warm) && e.at >= int64(c.Warm) {
			c.count()
		}
		c.now = e.at
		if e.worker < 0 && c.processes[e.wakes].wakes != e.at {
			continue // it has looked since
		}
		if e.worker >= 0 {
			if err := c.end(e.worker); err != nil {
				return nil, err
			}
		}
		if err := c.serve(e.wakes); err != nil {
			return nil, err
		}
	}
	c.settle(int64(c.Warm + c.Time))
	return c.result, nil
}

// count forgets what was counted while the crawl got under way.
func (c *crawl) count() {
	c.settle(int64(c.Warm))
	c.result.reset()
}

// settle takes note of what the workers do at the time.
func (c *crawl) settle(at int64) {
	for i := range c.workers {
		w := &c.workers[i]
		c.account(w, at, w.lease.Token == 0)
	}
}

// seed queues the first page of each host, one after another: hosts that were due at
// the same moment would be visited partition by partition.
func (c *crawl) seed() error {
	for i := range c.sites {
		at := begin.Add(time.Duration(i-len(c.sites)) * time.Microsecond)
		if _, _, err := c.parts[c.sites[i].of].Lease(context.Background(), at, time.Hour, 0); err != nil {
			return err
		}
		u, err := page(i, 0)
		if err != nil {
			return err
		}
		// Depth says which host it is.
		e := storage.Entry{URL: u, Class: storage.Early, Depth: i}
		if _, err := c.parts[c.sites[i].of].Add(context.Background(), []storage.Entry{e}, 0); err != nil {
			return err
		}
	}
	return nil
}

func (c *crawl) wake(p int, at int64) {
	c.processes[p].wakes = at
	heap.Push(&c.events, event{at, -1, p})
}

// account takes note of the time for which a worker waited, or worked.
func (c *crawl) account(w *worker, until int64, waited bool) {
	if waited {
		c.result.waited += time.Duration(until - w.since)
	}
	w.since = until
}

// serve takes leases for the workers of a process that wait, as Lease of storage/redis
// does: of the partition first whose host is due longest, as far as the process knows.
func (c *crawl) serve(number int) error {
	p := &c.processes[number]
	if len(p.waitingWorkers) == 0 {
		return nil
	}
	if c.now-p.at >= int64(c.Refresh) {
		if err := c.refresh(p); err != nil {
			return err
		}
	}
	for len(p.waitingWorkers) > 0 {
		part := p.longestDuePartition(c.now)
		if part < 0 {
			break
		}
		leases, err := c.lease(p, part, len(p.waitingWorkers))
		if err != nil {
			return err
		}
		for _, l := range leases {
			if err := c.visit(p.waitingWorkers[0], l); err != nil {
				return err
			}
			p.waitingWorkers = p.waitingWorkers[1:]
		}
	}
	if len(p.waitingWorkers) > 0 {
		c.wake(number, min(p.at+int64(c.Refresh), p.first()))
	}
	return nil
}

// askRarely is how often all partitions are asked, in times that they are looked at.
const askRarely = 20

// refresh asks the partitions of which others have changed something.
func (c *crawl) refresh(p *process) error {
	all := p.looks%askRarely == 0
	p.at = c.now
	p.looks++
	for part := range c.parts {
		if !all {
			c.result.load(part).look++
		}
		if all || p.seen[part] != c.changes[part] {
			if _, err := c.lease(p, part, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// longestDuePartition returns the partition whose first host is due longest, -1 if none is.
func (p *process) longestDuePartition(now int64) int {
	longest := -1
	for part, at := range p.turns {
		if at <= now && (longest < 0 || at < p.turns[longest]) {
			longest = part
		}
	}
	return longest
}

// first returns when the first host of all partitions is due.
func (p *process) first() int64 {
	first := int64(math.MaxInt64)
	for _, at := range p.turns {
		first = min(first, at)
	}
	return first
}

// lease calls lease.lua: for most leases, or only to ask what there is.
func (c *crawl) lease(p *process, part, maxLeases int) ([]storage.Lease, error) {
	leases, err := c.look(p, part, maxLeases)
	switch {
	case maxLeases == 0:
		c.result.load(part).ask++
	case len(leases) == 0:
		c.result.load(part).vain++
		p.shy[part] = c.now + int64(c.Refresh) + c.chance.Int64N(int64(c.Refresh))
		p.leave(part, c.now)
	default:
		c.result.load(part).lease++
		c.result.load(part).leased += len(leases)
	}
	return leases, err
}

// look takes leases of a partition, and keeps what it says of its next.
func (c *crawl) look(p *process, part, maxLeases int) ([]storage.Lease, error) {
	leases, next, err := c.parts[part].Lease(context.Background(), moment(c.now), time.Hour, maxLeases)
	if len(leases) > 0 {
		c.changes[part]++
	}
	p.seen[part] = c.changes[part]
	switch {
	case err != nil:
		return nil, err
	case next.Left == storage.Nothing:
		p.turns[part] = math.MaxInt64
	default:
		p.turns[part] = next.At.Sub(begin).Nanoseconds()
		p.leave(part, c.now)
	}
	return leases, nil
}

// leave leaves a partition's next host to others, where one was faster lately.
func (p *process) leave(part int, now int64) {
	if p.turns[part] > now && p.turns[part] < math.MaxInt64 {
		p.turns[part] = max(p.turns[part], p.shy[part])
	}
}

// visit has a worker visit what was leased.
func (c *crawl) visit(number int, l storage.Lease) error {
	w := &c.workers[number]
	c.account(w, c.now, true)
	w.lease = l
	s := &c.sites[l.Depth]
	due := l.Host.Due
	if due.Before(begin) {
		due = begin
	}
	late := moment(c.now).Sub(due)
	if late < 0 {
		return fmt.Errorf("%v is visited %v before its host is due", l.URL, -late)
	}
	c.result.late(late)
	took := c.answers(s)
	c.result.load(int(s.of)).renew += int(took / (c.Lease / 3))
	heap.Push(&c.events, event{c.now + int64(took), number, w.of})
	return nil
}

// end ends the visit of a worker, who gets in line again.
func (c *crawl) end(number int) error {
	w := &c.workers[number]
	l := w.lease
	w.lease = storage.Lease{}
	c.account(w, c.now, false)
	s := &c.sites[l.Depth]
	rest := time.Duration(s.rest) * time.Millisecond
	ack := storage.Ack{Lease: l, Host: &storage.Host{Due: moment(c.now).Add(rest), Gap: rest}}
	switch {
	case s.dead:
		s.failed++
		ack.Outcome, ack.At = storage.Later, moment(c.now).Add(time.Minute<<s.failed)
		ack.Host.Due = ack.At
		if s.failed == attempts {
			ack.Outcome = storage.Gone
		}
	case !s.robots: // the visit was to its robots.txt
		s.robots = true
		ack.Outcome = storage.Again
		c.result.load(int(s.of)).note++
	default:
		if err := c.discover(l.Depth, s); err != nil {
			return err
		}
		c.result.page(number)
	}
	part := c.parts[s.of]
	if err := part.Ack(context.Background(), []storage.Ack{ack}); err != nil {
		return fmt.Errorf("%v: %w", l.URL, err)
	}
	c.result.load(int(s.of)).ack++
	c.changes[s.of]++
	p := &c.processes[w.of]
	p.waitingWorkers = append(p.waitingWorkers, number)
	_, err := c.look(p, int(s.of), 0) // the ack says it
	return err
}

// discover adds the links of a page: a call for each partition that they are of.
func (c *crawl) discover(host int, s *site) error {
	calls := map[int][]storage.Entry{int(s.of): nil}
	for range newLinks {
		if s.found < s.pages {
			u, err := page(host, s.found)
			if err != nil {
				return err
			}
			s.found++
			calls[int(s.of)] = append(calls[int(s.of)], storage.Entry{URL: u, Class: storage.Usual, Depth: host})
		}
	}
	c.result.load(int(s.of)).urls += ownLinks
	for _, other := range c.others() {
		u, err := page(other, 0)
		if err != nil {
			return err
		}
		part := int(c.sites[other].of)
		calls[part] = append(calls[part], storage.Entry{URL: u, Class: storage.Usual, Depth: other})
		c.result.load(part).urls++
	}
	for part, entries := range calls {
		fates, err := c.parts[part].Add(context.Background(), entries, 0)
		if err != nil {
			return err
		}
		if storage.CountAdded(fates) > 0 {
			c.changes[part]++
		}
		c.result.load(part).add++
	}
	return nil
}
