// The program hostile measures what hostile sites cost the good ones beside them.
//
//	go run ./bench/hostile -memory 512MiB -time 30s -rounds 3
//
// In each round decorum serve runs twice in a memory cgroup: first with one good
// project, then with the same project and four hostile ones:
//
//   - bombs: 64 hosts, each with a sitemap of 50 MiB in 49 KiB of gzip and a page of
//     10 MiB in 10 KiB, sent at the same moment;
//   - wildcard: a domain each of whose pages links to 50 further host names;
//   - names: a page that links to 20,000 domains;
//   - plain: 2,000 hosts over plain http, whose pages never end.
//
// The program fails unless the kernel killed no process of the cgroup, the good
// project made at least two thirds of the visits that it made alone (the median of
// the rounds), no good host was visited before its delay was over, and the daemon's
// log has each warning about a limit once a project.
//
// It needs Linux and the right to make a cgroup. Where it cannot make one, it says
// so and ends with exit code 0.
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
	MeasureDuration time.Duration // how long visits are counted, alone and beside
	Rounds          int
	Dir             string // for data and logs of the daemons
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == serveArg {
		runDaemonInCgroup(os.Args[2])
	}
	var p benchmarkOptions
	memory := flag.Int64("memory", 512, "MiB that the daemon may use")
	flag.DurationVar(&p.MeasureDuration, "time", 30*time.Second, "how long to count visits, twice a round")
	flag.IntVar(&p.Rounds, "rounds", 3, "how many rounds to measure")
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

// run measures the rounds of p, prints them to out, and returns what was wrong.
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
		wrong = append(wrong, fmt.Errorf("the good project made %.2f of the visits that it makes alone", median))
	}
	return errors.Join(wrong...)
}

// printWarnings prints the warnings that the daemon logged, with their numbers.
func printWarnings(out io.Writer, limits []logWarningCount) {
	for _, w := range limits {
		fmt.Fprintf(out, "%6d  %s: %s\n", w.count, w.project, w.message)
	}
}

// measureDaemon runs a daemon with the given projects over a web of their own and returns
// what it did. Data and log are in the folder name of p.Dir.
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
	visits, err := w.countGoodVisitsDuring(ctx, p.MeasureDuration)
	stopped := d.stop()
	r := result{goodHostVisits: visits, minGap: w.minGoodHostGap()}
	r.oomKills, r.peakBytes, r.warnings = group.oomKills(), group.peakBytes(), d.warnings()
	if r.oomKills > 0 { // the cause of every other error
		return r, group.remove()
	}
	return r, errors.Join(err, stopped, group.remove())
}

// A result is what a daemon did with its projects.
type result struct {
	goodHostVisits int           // to pages of the good hosts
	minGap         time.Duration // between two requests to one good host
	oomKills       int           // by the kernel, for memory
	peakBytes      int64         // bytes that the cgroup used at most
	warnings       []logWarningCount
}

// violationsError returns what the daemon must not have done.
func (r result) violationsError() error {
	var errs []error
	if r.oomKills > 0 {
		errs = append(errs, fmt.Errorf("the kernel killed the daemon for its memory, %d times", r.oomKills))
	}
	if r.minGap < goodDelay {
		errs = append(errs, fmt.Errorf("a good host had %v between two requests; its delay is %v", r.minGap, goodDelay))
	}
	for _, w := range r.warnings {
		if w.count > 1 {
			errs = append(errs, fmt.Errorf("the log has %d lines of one limit: %s: %s", w.count, w.project, w.message))
		}
	}
	return errors.Join(errs...)
}
