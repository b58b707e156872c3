// Hostile measures how much hostile sites slow down the crawl of good sites in the same daemon.
//
//	go run ./bench/hostile -memory 512MiB -time 30s -rounds 3
//
// In each round decorum serve runs twice in a memory cgroup: first with one good
// project, then with the same project and four hostile ones:
//
//   - bombs: 64 hosts, each with a sitemap of 50 MiB in 49 KiB of gzip and a page of
//     10 MiB in 10 KiB, sent at the same moment;
//   - wildcard: a domain in which each page links to 50 further host names;
//   - names: a page that links to 20,000 domains;
//   - plain: 2,000 endless hosts over plain http.
//
// The program fails if the kernel killed a process of the cgroup, if the good project made less
// than two thirds of the visits that it made alone (the median of the rounds), if a good host was
// visited before its delay was over, or if the daemon's log has a warning about a limit more than
// once per project.
//
// It requires Linux and the right to create a cgroup. If it cannot create one, it prints SKIPPED
// and ends with exit code 0.
//
// Begin reading at run and measureDaemon; web.go has the sites. The HTTP server of the web and a
// reader of the daemon's log run in goroutines, which end before measureDaemon returns.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/program"
	"github.com/decorum-crawler/decorum/bench/internal/table"
)

// A benchmarkOptions is what the program measures.
type benchmarkOptions struct {
	MaxMemoryBytes  int64         // bytes that the daemon's cgroup may use
	MeasureDuration time.Duration // how long to count visits, in each of the two runs of a round
	Rounds          int
	Dir             string // directory for data and logs of the daemons
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == serveArg {
		runDaemonInCgroup(os.Args[2])
	}
	var p benchmarkOptions
	memory := flag.Int64("memory", 512, "MiB that the daemon may use")
	flag.DurationVar(&p.MeasureDuration, "time", 30*time.Second, "how long to count visits, twice per round")
	flag.IntVar(&p.Rounds, "rounds", 3, "number of rounds")
	flag.StringVar(&p.Dir, "dir", "", "keep data and logs in this directory (default: a directory that is removed)")
	flag.Parse()
	p.MaxMemoryBytes = *memory << 20
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, p, os.Stdout)
	if errors.Is(err, errNoCgroup) {
		fmt.Println("SKIPPED:", err)
		return
	}
	program.Exit("bench/hostile", err)
}

// run measures the rounds of p, prints them to out, and returns an error for each violated
// condition.
func run(ctx context.Context, p benchmarkOptions, out io.Writer) (err error) {
	if p.Rounds < 1 || p.MeasureDuration <= 0 || p.MaxMemoryBytes <= 0 {
		return errors.New("-memory, -time and -rounds must be positive")
	}
	if p.Dir == "" {
		if p.Dir, err = os.MkdirTemp("", "bench-hostile-"); err != nil {
			return err
		}
		defer os.RemoveAll(p.Dir)
	}
	// Each round measures the good project alone and beside the hostile ones.
	var ratios []float64
	var wrong []error
	t := table.New(out, "round", "visits alone", "beside", "ratio", "peak MiB", "kills", "warnings")
	for round := range p.Rounds {
		alone, err := measureDaemon(ctx, p, fmt.Sprintf("%d-alone", round), []projectConfig{goodProject})
		if err != nil {
			return err
		}
		beside, err := measureDaemon(ctx, p, fmt.Sprintf("%d-beside", round), append(hostileProjects(), goodProject))
		if err != nil {
			return err
		}
		ratio := float64(beside.goodHostVisits) / float64(alone.goodHostVisits)
		ratios = append(ratios, ratio)
		wrong = append(wrong, alone.violationsError(), beside.violationsError())
		t.Row(round+1, alone.goodHostVisits, beside.goodHostVisits, fmt.Sprintf("%.2f", ratio),
			beside.peakBytes>>20, beside.oomKills, len(beside.warnings))
		printWarnings(out, beside.warnings)
	}
	t.Flush()
	slices.Sort(ratios)
	if median := ratios[len(ratios)/2]; median < 2.0/3 {
		wrong = append(wrong, fmt.Errorf("the good project made only %.2f of the visits that it makes alone", median))
	}
	return errors.Join(wrong...)
}

// printWarnings prints the warnings in the daemon's log, with their counts.
func printWarnings(out io.Writer, limits []logWarningCount) {
	for _, w := range limits {
		fmt.Fprintf(out, "%6d  %s: %s\n", w.count, w.project, w.message)
	}
}

// measureDaemon runs a daemon with the given projects on a new web, in a new cgroup, and returns the
// result. Data and log of the daemon are in the folder name of p.Dir.
func measureDaemon(ctx context.Context, p benchmarkOptions, name string, projects []projectConfig) (result, error) {
	dir := filepath.Join(p.Dir, name)
	w, err := startWeb()
	if err != nil {
		return result{}, err
	}
	defer w.Close()
	group, err := newCgroup(p.MaxMemoryBytes)
	if err != nil {
		return result{}, err
	}
	d, err := startDaemon(dir, group, w.addr, projects)
	if err != nil {
		return result{}, errors.Join(err, group.remove())
	}
	// Count visits, then stop the daemon and read the figures of the cgroup.
	visits, err := w.countGoodVisitsDuring(ctx, p.MeasureDuration)
	stopped := d.stop()
	r := result{goodHostVisits: visits, minGap: w.minGoodHostGap()}
	r.oomKills, r.peakBytes, r.warnings = group.oomKills(), group.peakBytes(), d.warnings()
	if r.oomKills > 0 { // the cause of every other error
		return r, group.remove()
	}
	return r, errors.Join(err, stopped, group.remove())
}

// A result has the figures of one daemon.
type result struct {
	goodHostVisits int           // visits to pages of the good hosts
	minGap         time.Duration // shortest time between two requests to one good host
	oomKills       int           // processes that the kernel killed because of the memory limit
	peakBytes      int64         // peak memory of the cgroup
	warnings       []logWarningCount
}

// violationsError returns an error for each condition that the daemon violated.
func (r result) violationsError() error {
	var errs []error
	if r.oomKills > 0 {
		errs = append(errs, fmt.Errorf("the kernel killed the daemon %d times because of the memory limit", r.oomKills))
	}
	if r.minGap < goodDelay {
		errs = append(errs, fmt.Errorf("two requests to a good host were only %v apart; its delay is %v", r.minGap,
			goodDelay))
	}
	for _, w := range r.warnings {
		if w.count > 1 {
			errs = append(errs, fmt.Errorf("the log has %d lines about one limit: %s: %s",
				w.count, w.project, w.message))
		}
	}
	return errors.Join(errs...)
}
