package main

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// smallSimulation returns a simulation that takes a moment.
func smallSimulation(hosts int) *simulation {
	p := simulationOptions{TotalWorkers: 50, WarmUp: 10 * time.Second, MeasuredTime: time.Minute,
		PartitionRefreshInterval: 500 * time.Millisecond, LeaseTime: 30 * time.Second, Seed: 7}
	return newSimulation(p, hosts, 5, 16)
}

// TestSimulate: with more due hosts than workers, the workers hardly wait; with few hosts, they
// mostly wait. In both cases, the counts of calls agree with the visits.
func TestSimulate(t *testing.T) {
	many, err := smallSimulation(3000).run()
	if err != nil {
		t.Fatal(err)
	}
	few, err := smallSimulation(20).run()
	if err != nil {
		t.Fatal(err)
	}
	if w := many.waitingShare(); w > 0.01 {
		t.Errorf("with many hosts the workers waited for %.3f of their time, want at most 0.01", w)
	}
	if w := few.waitingShare(); w < 0.5 || w > 1 {
		t.Errorf("with few hosts the workers waited for %.3f of their time, want at least 0.5", w)
	}
	for name, r := range map[string]*result{"many": many, "few": few} {
		pages, calls := r.totalPagesAndCalls()
		var sum redisScriptCallCounts
		for _, l := range r.callsByPartition {
			sum.leasedURLs += l.leasedURLs
			sum.acks += l.acks
			sum.leaseQueries += l.leaseQueries
		}
		if pages == 0 || calls < 2*pages || sum.acks < pages || len(r.lateSeconds) != sum.leasedURLs ||
			sum.leasedURLs-sum.acks > 50 || sum.acks-sum.leasedURLs > 50 {
			t.Errorf("%s: %d pages, %d calls, %+v, %d visits", name, pages, calls, sum, len(r.lateSeconds))
		}
		// Each of the 5 processes queries 16 partitions at most every half second.
		if sum.leaseQueries > 16*5*2*61 {
			t.Errorf("%s: %d queries", name, sum.leaseQueries)
		}
	}
}

// TestFewEmptyLeases: when twenty processes wait for the same hosts, at most a quarter of the calls
// return no lease, and no host waits more than 0.5 s although processes leave hosts to each other.
func TestFewEmptyLeases(t *testing.T) {
	p := simulationOptions{TotalWorkers: 200, WarmUp: 10 * time.Second, MeasuredTime: time.Minute,
		PartitionRefreshInterval: 500 * time.Millisecond, LeaseTime: 30 * time.Second, Seed: 7}
	r, err := newSimulation(p, 200, 20, 8).run()
	if err != nil {
		t.Fatal(err)
	}
	_, calls := r.totalPagesAndCalls()
	emptyLeases := 0
	for _, l := range r.callsByPartition {
		emptyLeases += l.emptyLeases
	}
	if share := float64(emptyLeases) / float64(calls); share > 0.25 {
		t.Errorf("%.2f of the calls return no lease", share)
	}
	slices.Sort(r.lateSeconds)
	if late := r.latenessQuantile(1); late > 0.5 {
		t.Errorf("a host waited for %v s", late)
	}
}

// TestRun: two runs with the same seed print the same tables, which have a row for each combination.
func TestRun(t *testing.T) {
	p := simulationOptions{HostCounts: "20,50", ProcessCounts: "1,3", PartitionCounts: "4,16",
		RedisMasterCounts: "1,3", TotalWorkers: 10,
		MeasuredTime: 10 * time.Second, PartitionRefreshInterval: time.Second, LeaseTime: time.Second, Seed: 7}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := run(p, out, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(first.String(), second.String()); diff != "" {
		t.Error(diff)
	}
	if n := bytes.Count(first.Bytes(), []byte("\n")); n != 2+8+2+2*8 {
		t.Errorf("%d lines:\n%s", n, &first)
	}
	p.ProcessCounts = "11"
	if err := run(p, io.Discard, io.Discard); err == nil {
		t.Error("11 processes with 10 workers: no error")
	}
}
