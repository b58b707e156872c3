// The program simulate plans a crawl of many processes that no machine at hand could
// run: workers and hosts are made up, time is virtual, and the state is kept by the
// verbs of memory.Store, one for each partition of storage/redis.
//
//	go run ./bench/simulate
//	go run ./bench/simulate -hosts 1000,1000000 -partitions 64,256 -warm 20m -time 20m
//
// Each combination is a row of the first table: pages/s; the share of their time for
// which workers waited; how late hosts were visited after they were due, in seconds,
// as quantiles of all visits; the fewest and the most pages of a worker; and calls of
// scripts for a page. The second table has, for each row, what masters would have to do:
// calls/s of all, the busiest master by the mean one, and how much of a core the busiest
// would be busy with, by the processor time of each script (see costs).
//
// The web: sites of 10 to 100,000 pages by a power law; a rest of 0.2 s to 30 s after each
// visit, 1 s mostly; answers that take a log-normal time of 0.4 s in the middle; one host
// in fifty that answers nothing, and is tried three times; one in twenty whose robots.txt
// must be had first. A page has 40 links to its own site, two of them new as long as
// there are pages, and four to other sites, of which some are linked to much. All hosts
// are known from the beginning.
//
// What a process knows of partitions, and when it asks, is as in storage/redis, but that
// calls take no time. Runs are of -seed, and come out the same each time.
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

// A simulationOptions is what to simulate; lists make several runs.
type simulationOptions struct {
	HostCounts, ProcessCounts, PartitionCounts, RedisMasterCounts string // lists

	TotalWorkers             int
	WarmUp                   time.Duration
	MeasuredTime             time.Duration
	PartitionRefreshInterval time.Duration
	LeaseTime                time.Duration
	Seed                     uint64
}

func main() {
	var p simulationOptions
	flag.StringVar(&p.HostCounts, "hosts", "1000,10000", "how many hosts: a run for each")
	flag.IntVar(&p.TotalWorkers, "workers", 1000, "visits at a time, of all processes together")
	flag.StringVar(&p.ProcessCounts, "processes", "20", "how many processes share the workers: a run for each")
	flag.StringVar(&p.PartitionCounts, "partitions", "64", "partitions of the store: a run for each")
	flag.StringVar(&p.RedisMasterCounts, "masters", "3,6,12", "masters over which partitions are spread")
	flag.DurationVar(&p.WarmUp, "warm", time.Minute, "how long the crawl goes on before it is counted: in the beginning all hosts are due")
	flag.DurationVar(&p.MeasuredTime, "time", 5*time.Minute, "how long it is counted")
	flag.DurationVar(&p.PartitionRefreshInterval, "refresh", 500*time.Millisecond, "how old may be what a process knows of partitions (redis.Options.Refresh)")
	flag.DurationVar(&p.LeaseTime, "lease", 30*time.Second, "store.redis.lease")
	flag.Uint64Var(&p.Seed, "seed", 1, "of all that is left to chance")
	flag.Parse()
	debug.SetGCPercent(25) // a million hosts are a gigabyte that stays
	program.Exit("bench/simulate", run(p, os.Stdout, os.Stderr))
}

// run makes the tables of a plan.
func run(p simulationOptions, out, progress io.Writer) error {
	var lists [4][]int
	for i, text := range []string{p.HostCounts, p.ProcessCounts, p.PartitionCounts, p.RedisMasterCounts} {
		var err error
		if lists[i], err = program.ParseCounts(strings.Split(text, ",")); err != nil {
			return err
		}
	}
	if p.TotalWorkers < 1 || p.WarmUp < 0 || p.MeasuredTime <= 0 || p.PartitionRefreshInterval <= 0 || p.LeaseTime <= 0 {
		return fmt.Errorf("workers must be at least 1, and times more than nothing")
	}
	var results []*result
	for _, hosts := range lists[0] {
		for _, processes := range lists[1] {
			for _, partitions := range lists[2] {
				if processes > p.TotalWorkers || partitions > 1024 {
					return fmt.Errorf("%d processes have %d workers, and there are at most 1024 partitions", processes, p.TotalWorkers)
				}
				began := time.Now()
				r, err := newSimulation(p, hosts, processes, partitions).run()
				if err != nil {
					return err
				}
				fmt.Fprintf(progress, "%d hosts, %d processes, %d partitions: %v\n", hosts, processes, partitions, time.Since(began).Round(time.Second))
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
