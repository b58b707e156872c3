// The program rediscluster measures the state of a crawl in Redis Cluster, on clusters of
// local processes:
//
//	go run ./bench/rediscluster
//	go run ./bench/rediscluster -clusters "" -memory 1000,10000,100000 -urls 500000
//	go run ./bench/rediscluster -clusters "" -workers 1,2,4
//
// There are three tables, each of which is left out if its flag is empty.
//
// Rates (-clusters): on clusters of so many masters+replicas, URLs are discovered, 50
// links in a call: scattered, each of another host than the one before, or paged, four
// of five of one host; then they are leased, at most 64 in a call, and acked one by
// one, hosts having no delay. Of the callers 16 share a store, as those of a process
// do, of which one leases. Processor time is that of this process and of all servers,
// replicas too, for one URL: rates are of the machine that all of them share, and
// processor time is what a larger cluster can be reckoned from.
//
// Memory (-memory): what one server uses for a URL that is queued, and for one that was
// visited, for so many hosts; and for a host beside its URLs.
//
// Workers (-workers): so many processes of decorum crawl visit one web of pages without
// end, on a cluster of three masters. Servers take -latency to answer, and each process
// has -in-hand requests under way, so that it is not the processor that limits it.
// Visits are counted by the web's server for -time, after all processes have begun;
// those of robots.txt count. Scale is visits/s by what so many workers would make if
// each made as many as in the first row. Processor time is of all workers, and of all
// servers, for one visit. The web's log is judged: a request too early is an error.
//
// It takes Linux for /proc, and redis-server.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/program"
	"github.com/decorum-crawler/decorum/bench/internal/table"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// A benchmarkOptions is what to measure.
type benchmarkOptions struct {
	ClusterLayouts, CallerCounts, MemoryBenchmarkHostCounts, WorkerCounts string // lists

	URLs, Hosts           int
	WorkerBenchmarkConfig workerBenchmarkConfig
	TempDir               string
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == crawlArg {
		runWorker()
	}
	var p benchmarkOptions
	flag.StringVar(&p.ClusterLayouts, "clusters", "1+0,3+0,3+3", "rates on clusters of so many masters+replicas")
	flag.StringVar(&p.CallerCounts, "callers", "1,16,64", "how many call at a time")
	flag.IntVar(&p.URLs, "urls", 50_000, "how many URLs are discovered, in each order, and in each row of memory")
	flag.IntVar(&p.Hosts, "hosts", 1000, "how many hosts they are of")
	flag.StringVar(&p.MemoryBenchmarkHostCounts, "memory", "1000,10000", "memory for so many hosts")
	flag.StringVar(&p.WorkerCounts, "workers", "", "visits/s of so many processes")
	flag.IntVar(&p.WorkerBenchmarkConfig.Hosts, "web-hosts", 2000, "hosts of the web of the workers")
	flag.IntVar(&p.WorkerBenchmarkConfig.ConcurrentRequestsPerWorker, "in-hand", 32, "requests that a worker has under way")
	flag.DurationVar(&p.WorkerBenchmarkConfig.Latency, "latency", 2*time.Second, "how long a server of the web takes to answer")
	flag.DurationVar(&p.WorkerBenchmarkConfig.Delay, "delay", 5*time.Second, "between two visits of a host")
	flag.DurationVar(&p.WorkerBenchmarkConfig.MeasureDuration, "time", 30*time.Second, "how long visits are counted")
	flag.StringVar(&p.TempDir, "dir", "", "where files go while it runs (default: the system's directory for temporary files)")
	flag.Parse()
	program.Exit("bench/rediscluster", run(p, os.Stdout))
}

// run makes the tables of a plan.
func run(p benchmarkOptions, out io.Writer) error {
	if p.URLs < 1 || p.Hosts < 1 || p.WorkerBenchmarkConfig.Hosts < 1 || p.WorkerBenchmarkConfig.ConcurrentRequestsPerWorker < 1 || p.WorkerBenchmarkConfig.MeasureDuration <= 0 {
		return errors.New("urls, hosts, web-hosts and in-hand must be at least 1, and time more than nothing")
	}
	for _, benchmark := range []struct {
		rows string
		run  func(p benchmarkOptions, rows []string, t *table.Table) error
	}{{p.ClusterLayouts, benchmarkStoreRates}, {p.MemoryBenchmarkHostCounts, benchmarkMemory}, {p.WorkerCounts, benchmarkWorkers}} {
		if benchmark.rows == "" {
			continue
		}
		t := table.New(out)
		if err := benchmark.run(p, strings.Split(benchmark.rows, ","), t); err != nil {
			return err
		}
		t.Row()
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// withCluster starts a cluster of masters+replicas for the time of do.
func withCluster(p benchmarkOptions, layout string, do func(*redistest.Cluster) error) error {
	dir, err := os.MkdirTemp(p.TempDir, "bench-cluster-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	masters, replicas, err := parseLayout(layout)
	if err != nil {
		return err
	}
	c, err := startCluster(dir, masters, replicas/masters)
	if err != nil {
		return err
	}
	defer c.KillAll()
	return do(c)
}

// parseLayout reads masters+replicas, of which each master has as many.
func parseLayout(layout string) (masters, replicas int, err error) {
	if n, _ := fmt.Sscanf(layout, "%d+%d", &masters, &replicas); n != 2 || masters < 1 || replicas < 0 || replicas%masters != 0 {
		return 0, 0, fmt.Errorf("cluster %q: expected masters+replicas, as many for each master, as in 3+3", layout)
	}
	return masters, replicas, nil
}
