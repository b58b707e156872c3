package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/program"
	"github.com/decorum-crawler/decorum/bench/internal/table"
	"github.com/decorum-crawler/decorum/bench/internal/web"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// A workerBenchmarkConfig describes the web of the workers and their crawl.
type workerBenchmarkConfig struct {
	Hosts, ConcurrentRequestsPerWorker int
	// Latency is the response time of servers, Delay the politeness delay, MeasureDuration the time
	// of the measurement.
	Latency, Delay, MeasureDuration time.Duration
}

// crawlArg as the first argument makes this program the decorum command.
const crawlArg = "crawl"

// runWorker runs the decorum command with this process's arguments.
func runWorker() { daemon.Main(nil) }

// benchmarkWorkers writes the table of workers, with a row for each number of processes in list.
func benchmarkWorkers(p benchmarkOptions, list []string, t *table.Table) error {
	counts, err := program.ParseCounts(list)
	if err != nil {
		return err
	}
	t.Row("workers", "visits/s", "scale", "us workers", "us servers")
	var one float64 // visits/s per worker in the first row
	for _, n := range counts {
		err := withCluster(p, "3+3", func(c *redistest.Cluster) error {
			rate, cost, err := p.WorkerBenchmarkConfig.measureWorkers(c, n)
			if err != nil {
				return err
			}
			if one == 0 {
				one = rate / float64(n)
			}
			each := func(d time.Duration) string {
				return fmt.Sprintf("%.0f", float64(d.Microseconds())/float64(cost.urls))
			}
			t.Row(n, fmt.Sprintf("%.1f", rate), fmt.Sprintf("%.2f", rate/(one*float64(n))),
				each(cost.clients), each(cost.servers))
			return nil
		})
		if err != nil {
			return fmt.Errorf("%d workers: %w", n, err)
		}
	}
	return nil
}

// newWeb returns an endless web: each page links to fan other pages of its host.
func (f workerBenchmarkConfig) newWeb() *crawltest.Web {
	const fan = 4
	sites := make([]crawltest.Site, f.Hosts)
	for h := range sites {
		sites[h] = crawltest.Site{Host: web.Host(h), Latency: crawltest.Latency{Base: f.Latency},
			Fallback: func(r crawltest.PageRequest) crawltest.Response {
				page, _ := strconv.Atoi(strings.TrimPrefix(r.Path, "/"))
				var links [fan]string
				for i := range links {
					links[i] = "/" + strconv.Itoa(web.Child(page, i, fan))
				}
				return crawltest.HTML(web.LinkParagraphs("One thing leads to another. ", 40, links[:]...))
			}}
	}
	return crawltest.New(sites...)
}

// measureWorkers runs n worker processes on a web. It returns the requests per second that the web
// received, and their number, time and CPU time; the clients' CPU time is that of the workers. An
// error of the judge is an error of the run.
func (f workerBenchmarkConfig) measureWorkers(c *redistest.Cluster, n int) (rate float64, cost measurement, err error) {
	served := f.newWeb()
	server, err := served.Start("")
	if err != nil {
		return 0, cost, err
	}
	defer server.Close()
	dir, err := os.MkdirTemp("", "bench-cluster-")
	if err != nil {
		return 0, cost, err
	}
	defer os.RemoveAll(dir)
	var all []*workerProcess
	defer func() {
		for _, w := range all {
			err = errors.Join(err, w.stop())
		}
		if report := served.Judge(crawltest.JudgeOptions{MinDelay: f.Delay,
			RequiredProductToken: "decorum"}); err == nil && !report.OK() {
			err = errors.New(report.String())
		}
	}()
	// Start the workers, and wait until all have begun and have their full number of requests in
	// flight.
	project := filepath.Join(dir, "project.yaml")
	if err := os.WriteFile(project, f.projectYAML(c), 0o600); err != nil {
		return 0, cost, err
	}
	for i := range n {
		w, err := startWorker(project, filepath.Join(dir, strconv.Itoa(i)), server.Addr)
		if err != nil {
			return 0, cost, err
		}
		all = append(all, w)
	}
	for _, w := range all {
		if err := w.awaitStart(); err != nil {
			return 0, cost, err
		}
	}
	time.Sleep(f.MeasureDuration / 4)
	return f.measureRequestRateAndCost(c, served, all)
}

// measureRequestRateAndCost counts the requests to the web for MeasureDuration, or longer, up to a
// minute, until it has received at least one.
func (f workerBenchmarkConfig) measureRequestRateAndCost(c *redistest.Cluster, served *crawltest.Web,
	all []*workerProcess) (rate float64, cost measurement, err error) {
	spentSoFar := func() (p clientServerCPUTime, err error) {
		if p, err = clientAndServerCPUTime(c); err != nil {
			return p, err
		}
		p.clients = 0
		for _, w := range all {
			t, err := processCPUTime(strconv.Itoa(w.cmd.Process.Pid))
			if err != nil {
				return p, err
			}
			p.clients += t
		}
		return p, nil
	}
	// Measure the requests and the CPU time between two moments.
	before, err := spentSoFar()
	if err != nil {
		return 0, cost, err
	}
	requestsBefore, begin := len(served.Log()), time.Now()
	for time.Sleep(f.MeasureDuration); len(served.Log()) == requestsBefore && time.Since(begin) < time.Minute; {
		time.Sleep(f.MeasureDuration)
	}
	cost.urls, cost.elapsed = len(served.Log())-requestsBefore, time.Since(begin)
	after, err := spentSoFar()
	cost.clientServerCPUTime = after.minus(before)
	return float64(cost.urls) / cost.elapsed.Seconds(), cost, err
}

// projectYAML returns the project file of all workers.
func (f workerBenchmarkConfig) projectYAML(c *redistest.Cluster) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "project: bench\nagent: {contact: 'mailto:bench@example.com'}\nstore: {redis: {addresses: "+
		"['%s']}}\n", strings.Join(c.Addrs(), "', '"))
	fmt.Fprintf(&b, "scope: {max_depth: 1000000}\npoliteness: {delay: %v}\nlimits: {workers: %d}\nfetch: "+
		"{allow_private: true}\nseeds:\n", f.Delay, f.ConcurrentRequestsPerWorker)
	for h := range f.Hosts {
		fmt.Fprintf(&b, "- http://%s/0\n", web.Host(h))
	}
	return []byte(b.String())
}

// A workerProcess is a decorum crawl process.
type workerProcess struct {
	cmd        *exec.Cmd
	stderr     strings.Builder
	outputPath string // file of output lines; it exists when the crawl has begun
}

// startWorker starts a worker with its own data directory, which connects to address for all hosts.
func startWorker(project, data, address string) (*workerProcess, error) {
	w := &workerProcess{outputPath: data + ".jsonl"}
	cmd, err := program.SelfCommand(crawlArg, "-c", project, "--data", data, "--output", w.outputPath,
		"--connect-to", "::"+address, "--progress=none", "--log-level=error")
	if err != nil {
		return nil, err
	}
	w.cmd, cmd.Stderr = cmd, &w.stderr
	return w, cmd.Start()
}

// awaitStart waits up to a minute until the worker has opened its output.
func (w *workerProcess) awaitStart() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		if _, err := os.Stat(w.outputPath); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("a worker did not start its crawl within a minute")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop ends the worker with SIGTERM and waits for it.
func (w *workerProcess) stop() error {
	if err := program.Stop(w.cmd, &sync.WaitGroup{}, daemon.ExitStopped); err != nil {
		return fmt.Errorf("a worker ended with %w\n%s", err, &w.stderr)
	}
	return nil
}
