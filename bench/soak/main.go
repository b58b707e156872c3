// Soak runs decorum serve for a given time, and checks whether it could run for months:
//
//	go run ./bench/soak -time 30m -hosts 2000 -delay 10s
//
// A web on loopback has endless hosts. Some pages fail, are slow, or redirect (see endlessWeb). The
// daemon, in a process of its own, crawls the web in three projects. Two of them share a quarter of
// the hosts. Each project takes a third more URLs of a host than it can visit (see maxURLsPerHost).
// Meanwhile an operator sets and lifts brakes on hosts, pauses and resumes a project, and edits a
// project file, every other time with an error. The program samples goroutines, heap, memory and
// open files all the time.
//
// At the end it stops the projects, and fails unless
//
//   - the daemon's metrics agree with the servers' counts, to the last request and byte. Only the result
//     of a request or response that a brake cut on its way may differ;
//   - the judge of crawltest finds no violation, and the daemon itself reports no delay shortfall;
//   - no host received a request while it had a brake, or while its project was paused;
//   - each series is flat: over the last two thirds of the run it grows by less than 2 % of its mean in
//     ten minutes. A run of less than ten minutes is too short for this check.
//
// The load is hosts / delay requests per second. The program requires Linux for /proc.
//
// Begin reading at soakRun.runCrawl (soak.go). The operator and the reader of the daemon's log run
// in goroutines, which end before the results are checked.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/program"
)

// A soakOptions describes a run: its web, its duration and where the daemon writes.
type soakOptions struct {
	Web            endlessWeb
	Duration       time.Duration
	SampleInterval time.Duration // time between two samples
	Dir            string        // directory for the daemon's data and project files
	Log            io.Writer     // receives the daemon's log

	HeapProfileFile string // file for a profile of the daemon's heap; "": no profile
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == serveArg {
		runDaemon()
	}
	var p soakOptions
	flag.IntVar(&p.Web.Hosts, "hosts", 2000, "number of hosts")
	flag.DurationVar(&p.Duration, "time", 30*time.Minute, "duration of the run")
	flag.DurationVar(&p.Web.CrawlerDelay, "delay", 10*time.Second, "delay between two visits to a host")
	flag.DurationVar(&p.SampleInterval, "every", 2*time.Second,
		"time between two samples: the heap, which varies between collections, needs many")
	flag.StringVar(&p.Dir, "dir", "", "directory for the daemon's files, which stay there (default: a directory "+
		"that is removed)")
	flag.StringVar(&p.HeapProfileFile, "profile", "",
		"file for a profile of the daemon's heap, taken just before the projects are stopped")
	flag.Parse()
	p.Log = os.Stderr
	program.Exit("bench/soak", run(p, os.Stdout))
}

// run runs a daemon by p, prints the results to out, and returns an error for each failed check.
func run(p soakOptions, out io.Writer) (err error) {
	if p.Web.Hosts < 4 || p.Web.CrawlerDelay <= 0 || p.SampleInterval <= 0 || p.Duration < 4*p.SampleInterval {
		return errors.New("a run needs at least 4 hosts, a positive delay, and the time of 4 samples")
	}
	if p.Dir == "" {
		if p.Dir, err = os.MkdirTemp("", "bench-soak-"); err != nil {
			return err
		}
		defer os.RemoveAll(p.Dir)
	}
	// Serve the web, with space in its log for all visits. Each robots.txt expires five times in a
	// run.
	p.Web.RobotsMaxAge = p.Duration / 6
	visits := int(p.Duration/p.Web.CrawlerDelay) + 20 // at most, per host
	served := p.Web.newTestWeb(p.Web.Hosts * visits)
	server, err := served.Start("")
	if err != nil {
		return err
	}
	defer server.Close()
	// Run the daemon, and stop it before its results are checked.
	d, err := startDaemon(p)
	if err != nil {
		return err
	}
	s := &soakRun{options: p, daemon: d, web: served, webAddr: server.Addr, out: out}
	err = s.runCrawl(context.Background())
	if stopped := d.stop(); err != nil || stopped != nil {
		return errors.Join(err, stopped)
	}
	return s.printAndCheckResults()
}
