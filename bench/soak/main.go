// The program soak runs decorum serve for as long as it is told, and asks whether it
// could go on so for months:
//
//	go run ./bench/soak -time 30m -hosts 2000 -delay 10s
//
// A web on loopback has hosts whose pages never end, some of which fail, are slow, or
// move (see web). The daemon, in a process of its own, crawls it in three projects, two
// of which share a quarter of the hosts; of each host it takes more URLs than it can
// visit, but no more than that (see urls). Meanwhile an operator puts brakes on hosts and
// takes them off, pauses a project and resumes it, and edits a project file, every
// other time so that it makes no sense. Goroutines, heap, memory and open files are
// sampled all the time.
//
// In the end the projects are stopped, and the program fails unless
//
//   - the daemon's metrics agree with what the servers have counted, to the last
//     request and byte. What became of a request or an answer that a brake overtook
//     on its way is the daemon's to say;
//   - the judge of crawltest finds no rule broken by any request, and the daemon
//     itself no rest that fell short;
//   - no host was asked for anything while a brake was on it, or its project paused;
//   - each series is flat: over the last two thirds of the run it grows by less than
//     2 % of its mean in ten minutes. A run of less than ten minutes is too short
//     to tell.
//
// The load is hosts / delay requests a second; it takes Linux for /proc.
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

// A soakOptions is how long to soak, and in what.
type soakOptions struct {
	Web            endlessWeb
	Duration       time.Duration
	SampleInterval time.Duration // a sample is taken
	Dir            string        // for what the daemon keeps
	Log            io.Writer     // for what it says

	HeapProfileFile string // file for a profile of its heap; "": none
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == serveArg {
		runDaemon()
	}
	var p soakOptions
	flag.IntVar(&p.Web.Hosts, "hosts", 2000, "how many hosts")
	flag.DurationVar(&p.Duration, "time", 30*time.Minute, "how long")
	flag.DurationVar(&p.Web.CrawlerDelay, "delay", 10*time.Second, "between two visits of a host")
	flag.DurationVar(&p.SampleInterval, "every", 2*time.Second, "how often a sample is taken: of the heap, between two collections, many tell more than few")
	flag.StringVar(&p.Dir, "dir", "", "where the daemon keeps its files; they stay there (default: a directory that is removed)")
	flag.StringVar(&p.HeapProfileFile, "profile", "", "file for a profile of the daemon's heap, taken just before the projects are stopped")
	flag.Parse()
	p.Log = os.Stderr
	program.Exit("bench/soak", run(p, os.Stdout))
}

// run soaks a daemon by a plan, and returns what was wrong with it.
func run(p soakOptions, out io.Writer) (err error) {
	if p.Web.Hosts < 4 || p.Web.CrawlerDelay <= 0 || p.SampleInterval <= 0 || p.Duration < 4*p.SampleInterval {
		return errors.New("it takes 4 hosts, a delay, and the time of 4 samples at least")
	}
	if p.Dir == "" {
		if p.Dir, err = os.MkdirTemp("", "bench-soak-"); err != nil {
			return err
		}
		defer os.RemoveAll(p.Dir)
	}
	p.Web.RobotsMaxAge = p.Duration / 6
	visits := int(p.Duration/p.Web.CrawlerDelay) + 20 // of a host, at most
	served := p.Web.newTestWeb(p.Web.Hosts * visits)
	server, err := served.Start("")
	if err != nil {
		return err
	}
	defer server.Close()
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
