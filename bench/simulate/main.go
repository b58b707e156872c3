// Simulate plans a crawl by many processes, larger than one machine can run: it simulates workers
// and hosts in virtual time, and keeps the state in stores of storage/memory, one for each
// partition of storage/redis.
//
//	go run ./bench/simulate
//	go run ./bench/simulate -hosts 1000,1000000 -partitions 64,256 -warm 20m -time 20m
//
// Each combination is a row of the first table: pages/s; the share of the workers' time spent
// waiting; how late hosts were visited after they were due, in seconds, as quantiles over all
// visits; the fewest and the most pages of a worker; the calls of scripts per page; and the share
// of calls that returned no lease. The second table has, for each row, the load of masters: calls/s
// of all masters, the load of the busiest master relative to the mean, the share of a core that the
// busiest needs, by the CPU time of each script (see cpuMicros), and the share of that time for
// queries.
//
// The web has sites of 10 to 100,000 pages by a power law; a delay of 0.2 s to 30 s after each
// visit, mostly 1 s; responses that take a log-normal time with a median of 0.4 s; one host in
// fifty that never responds and is tried three times; and one in twenty whose robots.txt must be
// fetched first. A page has 40 links to its own site, two of them new as long as the site has
// further pages, and four to other sites, some of these linked to often. All hosts are known
// from the beginning.
//
// Processes learn about partitions, and call scripts, at the same moments as in storage/redis, but
// calls take no time. The same -seed gives the same result.
//
// Begin reading at simulation.run (simulation.go). The program starts no goroutines.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/program"
	"github.com/decorum-crawler/decorum/bench/internal/table"
)

// A simulationOptions is what the program simulates: one run for each combination of the lists.
type simulationOptions struct {
	HostCounts, ProcessCounts, PartitionCounts, RedisMasterCounts string // lists, separated by commas

	TotalWorkers             int           // simultaneous visits of all processes together
	WarmUp                   time.Duration // virtual time before the measurement
	MeasuredTime             time.Duration // virtual time of the measurement
	PartitionRefreshInterval time.Duration // redis.Options.Refresh
	LeaseTime                time.Duration // store.redis.lease
	Seed                     uint64
}

func main() {
	var p simulationOptions
	flag.StringVar(&p.HostCounts, "hosts", "1000,10000", "numbers of hosts: a run for each")
	flag.IntVar(&p.TotalWorkers, "workers", 1000, "simultaneous visits of all processes together")
	flag.StringVar(&p.ProcessCounts, "processes", "20", "numbers of processes that share the workers: a run for each")
	flag.StringVar(&p.PartitionCounts, "partitions", "64", "numbers of partitions of the store: a run for each")
	flag.StringVar(&p.RedisMasterCounts, "masters", "3,6,12", "numbers of masters that share the partitions")
	flag.DurationVar(&p.WarmUp, "warm", time.Minute, "virtual time before the measurement: at first all hosts are due")
	flag.DurationVar(&p.MeasuredTime, "time", 5*time.Minute, "virtual time of the measurement")
	flag.DurationVar(&p.PartitionRefreshInterval, "refresh", 500*time.Millisecond,
		"maximum age of a process's knowledge of partitions (redis.Options.Refresh)")
	flag.DurationVar(&p.LeaseTime, "lease", 30*time.Second, "store.redis.lease")
	flag.Uint64Var(&p.Seed, "seed", 1, "seed of all random choices")
	flag.Parse()
	debug.SetGCPercent(25) // a million hosts take a gigabyte of live heap
	program.Exit("bench/simulate", run(p, os.Stdout, os.Stderr))
}

// run simulates all combinations of p and prints their tables to out.
func run(p simulationOptions, out, progress io.Writer) error {
	var lists [4][]int
	for i, text := range []string{p.HostCounts, p.ProcessCounts, p.PartitionCounts, p.RedisMasterCounts} {
		var err error
		if lists[i], err = program.ParseCounts(strings.Split(text, ",")); err != nil {
			return err
		}
	}
	if p.TotalWorkers < 1 || p.WarmUp < 0 || p.MeasuredTime <= 0 ||
		p.PartitionRefreshInterval <= 0 || p.LeaseTime <= 0 {
		return fmt.Errorf("workers must be at least 1, and times positive")
	}
	// Run every combination. Masters need no run: they only divide the partitions.
	var results []*result
	for _, hosts := range lists[0] {
		for _, processes := range lists[1] {
			for _, partitions := range lists[2] {
				if processes > p.TotalWorkers || partitions > 1024 {
					return fmt.Errorf("%d processes must share at least as many workers, not %d, and partitions "+
						"must be at most 1024", processes, p.TotalWorkers)
				}
				began := time.Now()
				r, err := newSimulation(p, hosts, processes, partitions).run()
				if err != nil {
					return err
				}
				fmt.Fprintf(progress, "%d hosts, %d processes, %d partitions: %v\n", hosts, processes, partitions,
					time.Since(began).Round(time.Second))
				results = append(results, r)
			}
		}
	}
	pages := table.New(out, tableHeader...)
	for _, r := range results {
		r.writeRow(pages)
	}
	pages.Row()
	masters := table.New(out, masterTableHeader...)
	for _, r := range results {
		for _, m := range lists[3] {
			r.writeMasterLoadRow(m, masters)
		}
	}
	masters.Row()
	return cmp.Or(pages.Flush(), masters.Flush())
}
