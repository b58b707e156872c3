// Rediscluster measures the state of a crawl in Redis Cluster, on clusters of local processes:
//
//	go run ./bench/rediscluster
//	go run ./bench/rediscluster -clusters "" -memory 1000,10000,100000 -urls 500000
//	go run ./bench/rediscluster -clusters "" -workers 1,2,4
//
// The program prints three tables. It omits a table whose flag is empty.
//
// Rates (-clusters), for clusters with the given numbers of masters+replicas: the program discovers
// URLs with calls of 50 links, either scattered, each on another host than the one before, or
// paged, four of five on one host. Then it leases them, at most 64 per call, and acks them one by
// one, without delays of hosts. Every 16 callers share a store, like the workers of a process, and
// one of them leases. CPU time is that of this process ("here") and of all servers, including
// replicas, per URL. The rates apply to the machine that all processes share; use the CPU times to
// size a larger cluster.
//
// Memory (-memory), for the given numbers of hosts: the memory of one server for a queued URL, for a
// visited URL, and for a host without its URLs.
//
// Workers (-workers): the given number of decorum crawl processes visit one endless web, on a
// cluster of three masters with a replica each. The web's servers respond after -latency, and each
// process has -in-hand requests in flight, so that the CPU does not limit it. The web counts the
// visits, including those to robots.txt, for -time after all processes have started. Scale is the
// ratio of visits/s to the rate of the first row per worker, times the number of workers. CPU time
// is that of all workers, and of all servers, per visit. A request that crawltest judges too early
// is an error.
//
// The program requires Linux, for /proc, and redis-server. Begin reading at run, then at the
// function of each table: benchmarkStoreRates, benchmarkMemory and benchmarkWorkers.
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

// A benchmarkOptions is what the program measures.
type benchmarkOptions struct {
	ClusterLayouts, CallerCounts, MemoryBenchmarkHostCounts, WorkerCounts string // lists, separated by commas

	URLs, Hosts           int
	WorkerBenchmarkConfig workerBenchmarkConfig
	TempDir               string
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == crawlArg {
		runWorker()
	}
	var p benchmarkOptions
	flag.StringVar(&p.ClusterLayouts, "clusters", "1+0,3+0,3+3", "clusters for the table of rates, as masters+replicas")
	flag.StringVar(&p.CallerCounts, "callers", "1,16,64", "numbers of simultaneous callers")
	flag.IntVar(&p.URLs, "urls", 50_000, "number of URLs to discover in each order, and in each row of memory")
	flag.IntVar(&p.Hosts, "hosts", 1000, "number of hosts of these URLs")
	flag.StringVar(&p.MemoryBenchmarkHostCounts, "memory", "1000,10000", "numbers of hosts for the table of memory")
	flag.StringVar(&p.WorkerCounts, "workers", "", "numbers of processes for the table of workers")
	flag.IntVar(&p.WorkerBenchmarkConfig.Hosts, "web-hosts", 2000, "number of hosts of the web for workers")
	flag.IntVar(&p.WorkerBenchmarkConfig.ConcurrentRequestsPerWorker, "in-hand", 32,
		"simultaneous requests of a worker")
	flag.DurationVar(&p.WorkerBenchmarkConfig.Latency, "latency", 2*time.Second,
		"time that a server of the web takes to respond")
	flag.DurationVar(&p.WorkerBenchmarkConfig.Delay, "delay", 5*time.Second, "delay between two visits to a host")
	flag.DurationVar(&p.WorkerBenchmarkConfig.MeasureDuration, "time", 30*time.Second, "how long to count visits")
	flag.StringVar(&p.TempDir, "dir", "",
		"directory for the files of a run (default: the system's directory for temporary files)")
	flag.Parse()
	program.Exit("bench/rediscluster", run(p, os.Stdout))
}

// run prints the tables of p to out.
func run(p benchmarkOptions, out io.Writer) error {
	if p.URLs < 1 || p.Hosts < 1 || p.WorkerBenchmarkConfig.Hosts < 1 ||
		p.WorkerBenchmarkConfig.ConcurrentRequestsPerWorker < 1 || p.WorkerBenchmarkConfig.MeasureDuration <= 0 {
		return errors.New("urls, hosts, web-hosts and in-hand must be at least 1, and time positive")
	}
	for _, benchmark := range []struct {
		rows string
		run  func(p benchmarkOptions, rows []string, t *table.Table) error
	}{{p.ClusterLayouts, benchmarkStoreRates}, {p.MemoryBenchmarkHostCounts, benchmarkMemory},
		{p.WorkerCounts, benchmarkWorkers}} {
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

// withCluster starts a cluster of masters+replicas, calls do, and kills the cluster.
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

// parseLayout parses masters+replicas. The replicas must be a multiple of the masters.
func parseLayout(layout string) (masters, replicas int, err error) {
	if n, _ := fmt.Sscanf(layout, "%d+%d", &masters, &replicas); n != 2 || masters < 1 ||
		replicas < 0 || replicas%masters != 0 {
		return 0, 0, fmt.Errorf("cluster %q: expected masters+replicas, equally many replicas for each master, as "+
			"in 3+3", layout)
	}
	return masters, replicas, nil
}
