package main

import (
	"fmt"
	"slices"
	"time"
)

// A load is how often scripts were called for a partition, and what for.
type load struct {
	look   int // the number of changes is read
	ask    int // lease.lua, only to ask
	vain   int // lease.lua, when others had taken what there was
	lease  int // lease.lua, with leases
	leased int // of these
	ack    int
	add    int
	urls   int // of these calls
	note   int
	renew  int
}

// costs is the processor time of a master, in microseconds, as BenchmarkScripts of
// storage/redis measured it on two cores at 2.5 GHz that others were busy on, too: it
// may be half of that, or twice.
var costs = struct{ look, ask, leased, ack, add, url, note float64 }{look: 3, ask: 74, leased: 160, ack: 172, add: 175, url: 0.8, note: 88}

func (l *load) calls() int {
	return l.look + l.ask + l.vain + l.lease + l.ack + l.add + l.note + l.renew
}

func (l *load) micros() float64 {
	return float64(l.look)*costs.look + float64(l.ask+l.vain+l.lease)*costs.ask + float64(l.leased)*costs.leased + float64(l.ack)*costs.ack +
		float64(l.add)*costs.add + float64(l.urls)*costs.url + float64(l.note+l.renew)*costs.note
}

// A result is what came of a run.
type result struct {
	plan
	hosts, processes, partitions int

	loads  []load
	pages  []int     // of each worker
	lates  []float32 // seconds
	waited time.Duration
}

func newResult(hosts, processes, partitions int, p plan) *result {
	r := &result{plan: p, hosts: hosts, processes: processes, partitions: partitions}
	r.reset()
	return r
}

// reset begins to count.
func (r *result) reset() {
	r.loads, r.pages, r.lates, r.waited = make([]load, r.partitions), make([]int, r.Workers), nil, 0
}

func (r *result) load(part int) *load { return &r.loads[part] }

func (r *result) page(worker int) { r.pages[worker]++ }

func (r *result) late(d time.Duration) { r.lates = append(r.lates, float32(d.Seconds())) }

// all adds up.
func (r *result) all() (pages, calls int) {
	for _, n := range r.pages {
		pages += n
	}
	for i := range r.loads {
		calls += r.loads[i].calls()
	}
	return pages, calls
}

// waiting returns the share of the workers' time for which they waited.
func (r *result) waiting() float64 {
	return r.waited.Seconds() / (r.Time.Seconds() * float64(r.Workers))
}

// quantile returns how late visits were of which the share q was not later.
func (r *result) quantile(q float64) float32 {
	if len(r.lates) == 0 {
		return 0
	}
	return r.lates[min(len(r.lates)-1, int(q*float64(len(r.lates))))]
}

const header = "hosts\tworkers\tprocesses\tpartitions\tpages/s\twaiting\tlate 50%\t99%\tmost\tworker\tcalls/page\tin vain\t"

// row writes what came of the run.
func (r *result) row(row func(...any)) {
	slices.Sort(r.lates)
	pages, calls := r.all()
	vain := 0
	for i := range r.loads {
		vain += r.loads[i].vain
	}
	row(r.hosts, r.Workers, r.processes, r.partitions, fmt.Sprintf("%.0f", float64(pages)/r.Time.Seconds()),
		fmt.Sprintf("%.1f %%", 100*r.waiting()), seconds(r.quantile(0.5)), seconds(r.quantile(0.99)), seconds(r.quantile(1)),
		fmt.Sprintf("%d–%d", slices.Min(r.pages), slices.Max(r.pages)), fmt.Sprintf("%.1f", float64(calls)/float64(pages)),
		fmt.Sprintf("%.1f %%", 100*float64(vain)/float64(calls)))
}

func seconds(s float32) string {
	if s >= 10 {
		return fmt.Sprintf("%.0f", s)
	}
	return fmt.Sprintf("%.2f", s)
}

const masterHeader = "hosts\tprocesses\tpartitions\tmasters\tcalls/s\tbusiest/mean\tof a core\tasking\t"

// masterRow writes what so many masters would have to do, each of which has as many slots.
func (r *result) masterRow(masters int, row func(...any)) {
	micros, calls := make([]float64, masters), 0
	all, asking := 0.0, 0.0
	for i := range r.loads {
		l := &r.loads[i]
		micros[i*masters/r.partitions] += l.micros()
		all += l.micros()
		asking += float64(l.look)*costs.look + float64(l.ask+l.vain)*costs.ask
		calls += l.calls()
	}
	busiest := slices.Max(micros)
	row(r.hosts, r.processes, r.partitions, masters, fmt.Sprintf("%.0f", float64(calls)/r.Time.Seconds()),
		fmt.Sprintf("%.2f", busiest*float64(masters)/all), fmt.Sprintf("%.0f %%", busiest/1e4/r.Time.Seconds()),
		fmt.Sprintf("%.0f %%", 100*asking/all))
}
