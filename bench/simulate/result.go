package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/table"
)

// A redisScriptCallCounts counts the calls of scripts for a partition by their purpose.
type redisScriptCallCounts struct {
	changeCountReads int // reads of the partition's number of changes
	leaseQueries     int // calls of lease.lua for 0 leases, only to learn when the next host is due
	emptyLeases      int // calls of lease.lua without a lease, because another process was faster
	nonEmptyLeases   int // calls of lease.lua with leases
	leasedURLs       int // URLs of nonEmptyLeases
	acks             int
	adds             int
	addedURLs        int // URLs of adds
	notes            int
	renewals         int
}

// cpuMicros has the CPU times of a master, in microseconds per call or URL. BenchmarkScripts of
// storage/redis measured them on two busy cores at 2.5 GHz, so they may be wrong by a factor of two.
var cpuMicros = struct{ changeRead, leaseQuery, leasedURL, ack, add, addedURL, note float64 }{changeRead: 3,
	leaseQuery: 74, leasedURL: 160, ack: 172, add: 175, addedURL: 0.8, note: 88}

// total returns the number of calls.
func (l *redisScriptCallCounts) total() int {
	return l.changeCountReads + l.leaseQueries + l.emptyLeases + l.nonEmptyLeases +
		l.acks + l.adds + l.notes + l.renewals
}

// totalCPUMicros returns the CPU time of the calls, in microseconds.
func (l *redisScriptCallCounts) totalCPUMicros() float64 {
	return float64(l.changeCountReads)*cpuMicros.changeRead + float64(
		l.leaseQueries+l.emptyLeases+l.nonEmptyLeases)*cpuMicros.leaseQuery + float64(
		l.leasedURLs)*cpuMicros.leasedURL + float64(l.acks)*cpuMicros.ack +
		float64(l.adds)*cpuMicros.add + float64(l.addedURLs)*cpuMicros.addedURL + float64(
		l.notes+l.renewals)*cpuMicros.note
}

// A result has the figures of a run.
type result struct {
	simulationOptions
	hosts, processes, partitions int

	callsByPartition []redisScriptCallCounts
	pagesByWorker    []int
	lateSeconds      []float32     // of each visit: how long after its host was due it began
	waitedTime       time.Duration // sum over all workers
}

// newEmptyResult returns a result without counts.
func newEmptyResult(hosts, processes, partitions int, p simulationOptions) *result {
	r := &result{simulationOptions: p, hosts: hosts, processes: processes, partitions: partitions}
	r.resetCounts()
	return r
}

// resetCounts sets all counts to 0.
func (r *result) resetCounts() {
	r.callsByPartition, r.pagesByWorker, r.lateSeconds, r.waitedTime = make([]redisScriptCallCounts, r.partitions),
		make([]int, r.TotalWorkers), nil, 0
}

// callCountsOfPartition returns the counts of a partition, for changes.
func (r *result) callCountsOfPartition(part int) *redisScriptCallCounts {
	return &r.callsByPartition[part]
}

// countPage counts a page of a worker.
func (r *result) countPage(worker int) { r.pagesByWorker[worker]++ }

// addLateness records how long after its host was due a visit began.
func (r *result) addLateness(d time.Duration) {
	r.lateSeconds = append(r.lateSeconds, float32(d.Seconds()))
}

// totalPagesAndCalls returns the pages of all workers and the calls for all partitions.
func (r *result) totalPagesAndCalls() (pages, calls int) {
	for _, n := range r.pagesByWorker {
		pages += n
	}
	for i := range r.callsByPartition {
		calls += r.callsByPartition[i].total()
	}
	return pages, calls
}

// waitingShare returns the share of the workers' time that they spent waiting.
func (r *result) waitingShare() float64 {
	return r.waitedTime.Seconds() / (r.MeasuredTime.Seconds() * float64(r.TotalWorkers))
}

// latenessQuantile returns quantile q of lateSeconds, which must be sorted.
func (r *result) latenessQuantile(q float64) float32 {
	if len(r.lateSeconds) == 0 {
		return 0
	}
	return r.lateSeconds[min(len(r.lateSeconds)-1, int(q*float64(len(r.lateSeconds))))]
}

var tableHeader = []string{"hosts", "workers", "processes", "partitions", "pages/s", "waiting", "late 50%", "99%",
	"most", "worker", "calls/page", "in vain"}

// writeRow writes the row of the run in the first table.
func (r *result) writeRow(t *table.Table) {
	slices.Sort(r.lateSeconds)
	pages, calls := r.totalPagesAndCalls()
	emptyLeases := 0
	for i := range r.callsByPartition {
		emptyLeases += r.callsByPartition[i].emptyLeases
	}
	t.Row(r.hosts, r.TotalWorkers, r.processes, r.partitions,
		fmt.Sprintf("%.0f", float64(pages)/r.MeasuredTime.Seconds()),
		fmt.Sprintf("%.1f %%", 100*r.waitingShare()), formatSeconds(r.latenessQuantile(0.5)),
		formatSeconds(r.latenessQuantile(0.99)), formatSeconds(r.latenessQuantile(1)),
		fmt.Sprintf("%d–%d", slices.Min(r.pagesByWorker), slices.Max(r.pagesByWorker)),
		fmt.Sprintf("%.1f", float64(calls)/float64(pages)),
		fmt.Sprintf("%.1f %%", 100*float64(emptyLeases)/float64(calls)))
}

// formatSeconds formats s with two decimals, or without decimals from 10 on.
func formatSeconds(s float32) string {
	if s >= 10 {
		return fmt.Sprintf("%.0f", s)
	}
	return fmt.Sprintf("%.2f", s)
}

var masterTableHeader = []string{"hosts", "processes", "partitions", "masters", "calls/s",
	"busiest/mean", "of a core", "asking"}

// writeMasterLoadRow writes the row of the run in the second table, for masters that share the
// partitions equally.
func (r *result) writeMasterLoadRow(masters int, t *table.Table) {
	micros, calls := make([]float64, masters), 0
	all, asking := 0.0, 0.0
	for i := range r.callsByPartition {
		l := &r.callsByPartition[i]
		micros[i*masters/r.partitions] += l.totalCPUMicros()
		all += l.totalCPUMicros()
		asking += float64(l.changeCountReads)*cpuMicros.changeRead + float64(
			l.leaseQueries+l.emptyLeases)*cpuMicros.leaseQuery
		calls += l.total()
	}
	busiest := slices.Max(micros)
	t.Row(r.hosts, r.processes, r.partitions, masters, fmt.Sprintf("%.0f", float64(calls)/r.MeasuredTime.Seconds()),
		fmt.Sprintf("%.2f", busiest*float64(masters)/all), fmt.Sprintf("%.0f %%", busiest/1e4/r.MeasuredTime.Seconds()),
		fmt.Sprintf("%.0f %%", 100*asking/all))
}
