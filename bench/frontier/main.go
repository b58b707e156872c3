// Frontier measures the frontier and its store at the size of a real crawl:
//
//	go run ./bench/frontier -urls 1000000,5000000,20000000
//
// For each size, a child process discovers that many new URLs on 100,000 origins with
// frontier.Discover, offers URLs that are known, leases and acks. Then the program kills the child
// with SIGKILL while it discovers more, and opens the store again. A run fails if a known URL
// counts as new, or if a flushed URL is missing after the kill.
//
// The time of new/s ends when all URLs are durable. The column "in the log" has the changes that
// are in the log of the store at that time and not yet in their place: a large part of a small run,
// and the same number in a large one. The file is in the system's cache when the store is opened
// again.
//
// There are two orders: scattered, with each URL on another origin than the one before, and paged,
// with the 50 links of a page, four of five to its own site. The program writes progress to
// standard error and a table to standard output.
//
// With -curve, one file of each order grows, and a row is printed at each of several sizes:
//
//	go run ./bench/frontier -curve -order paged
//
// new/s, the CPU time, the bytes written and read, and the peaks of the heap and of the anonymous RSS
// are of the URLs since the row before; seen/s is of URLs of the whole file. Written are the bytes of
// all write calls, read those that came from the disk and not from the system's cache. The mapped RSS
// is the part of the file that is mapped and in that cache, which the system can take back at any time.
// The last columns are what the disk alone can do at that time. GOMEMLIMIT=460MiB in the environment
// keeps the anonymous RSS within 512 MiB. The default points of paged end at 100 million URLs: they take
// about 20 GB of disk, and hours; -urls sets others. This needs Linux.
//
// Begin reading at measureKillAndReopen for the parent and at runPhases (phases.go) for the child; of a
// curve, at runCurves (curve.go) and measurePoint.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/program"
	"github.com/decorum-crawler/decorum/bench/internal/table"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// A runOptions is the task of one run, which the child gets as JSON.
type runOptions struct {
	Order      string // scattered or paged
	URLs       int    // new URLs to discover
	Origins    int
	StoreFile  string
	ProfileDir string // directory for CPU and heap profiles; "": no profiles

	CurvePoints []int // numbers of URLs at which a curve has its points; nil: no curve
}

func main() {
	urls := flag.String("urls", "", fmt.Sprintf("numbers of URLs: one run for each, or the points of a curve "+
		"(default %s; of a curve %s paged and %s scattered)",
		defaultSizes, defaultCurves["paged"], defaultCurves["scattered"]))
	orders := flag.String("order", "scattered,paged", "orders of discovery")
	curve := flag.Bool("curve", false, "measure one growing file of each order at several points")
	origins := flag.Int("origins", 100_000, "number of origins")
	dir := flag.String("dir", "", "directory for the files (default: a temporary directory)")
	profile := flag.String("profile", "", "directory for profiles of the child processes")
	child := flag.String("child", "", "task of a child process, as JSON; the program sets it itself")
	flag.Parse()
	p := runOptions{Origins: *origins, ProfileDir: *profile}
	program.Exit("bench/frontier", run(p, *curve, *urls, strings.Split(*orders, ","), *dir, *child))
}

const defaultSizes = "1000000,5000000,20000000"

// defaultCurves has the points of the curve of each order.
var defaultCurves = map[string]string{
	"paged":     "1000000,2000000,5000000,10000000,20000000,50000000,90000000,100000000",
	"scattered": "1000000,2000000,5000000,10000000,20000000",
}

// run is the child if it has a task, and otherwise runs a child for each order, and for each size
// unless it measures curves, and prints their figures.
func run(p runOptions, curve bool, urls string, orders []string, dir, child string) error {
	if child != "" {
		if err := json.Unmarshal([]byte(child), &p); err != nil {
			return err
		}
		if p.CurvePoints != nil {
			return runCurve(p, os.Stdout, diskProbeBytes)
		}
		return runPhases(p)
	}
	base, err := os.MkdirTemp(dir, "bench-frontier-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	p.StoreFile = filepath.Join(base, "frontier.db")
	if curve {
		return runCurves(p, urls, orders)
	}
	return runSizes(p, cmp.Or(urls, defaultSizes), orders)
}

// runSizes measures each order and size with a new store.
func runSizes(p runOptions, urls string, orders []string) error {
	sizes, err := parseSizes(urls)
	if err != nil {
		return err
	}
	t := table.New(os.Stdout, append([]string{"order", "URLs"}, figureNames()...)...)
	for _, p.Order = range orders {
		for _, p.URLs = range sizes {
			figures, err := measureKillAndReopen(p)
			if err != nil {
				return err
			}
			row := []any{p.Order, p.URLs}
			for _, name := range figureNames() {
				row = append(row, figures[name])
			}
			t.Row(row...)
			if err := os.Remove(p.StoreFile); err != nil {
				return err
			}
		}
	}
	return t.Flush()
}

// parseSizes parses numbers of URLs, and rounds each up to whole pages.
func parseSizes(list string) ([]int, error) {
	sizes, err := program.ParseCounts(strings.Split(list, ","))
	for i, n := range sizes {
		sizes[i] = (n + linksPerPage - 1) / linksPerPage * linksPerPage
	}
	return sizes, err
}

// figureNames returns the names of the figures in the order of the table's columns.
func figureNames() []string {
	return []string{newRate, urlsInLog, diskPerURL, seenRate, mixedRate, leaseRate, heapPeak, reopenTime, reopenHeap}
}

// The names of the figures, which are the headings of the table.
const (
	newRate    = "new/s"
	urlsInLog  = "in the log"
	diskPerURL = "disk B/URL"
	seenRate   = "seen/s"
	mixedRate  = "links/s 90% seen"
	leaseRate  = "lease+ack/s"
	heapPeak   = "heap peak MiB"
	reopenTime = "reopen s"
	reopenHeap = "its heap MiB"
)

// measureKillAndReopen runs p in a child, kills the child, opens its store, and returns the figures
// by name.
func measureKillAndReopen(p runOptions) (map[string]string, error) {
	cmd, err := program.TaskCommand("-child", p)
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	// The child prints its figures, and then a line without a tab when it is ready to be killed.
	figures := make(map[string]string)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), "\t")
		if !ok {
			break
		}
		figures[name] = value
	}
	if err := cmd.Process.Kill(); err != nil {
		return nil, err
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
		return nil, fmt.Errorf("the process ended before it was killed: %w", err)
	}
	return figures, measureReopen(p, figures)
}

// measureReopen opens the store of the killed child and adds the time and memory of that to
// figures. It returns an error if the store lacks flushed URLs.
func measureReopen(p runOptions, figures map[string]string) error {
	peak := trackPeakHeap()
	begin := time.Now()
	s, err := bolt.Open(p.StoreFile, bolt.Options{})
	if err != nil {
		return err
	}
	figures[reopenTime] = fmt.Sprintf("%.2f", time.Since(begin).Seconds())
	figures[reopenHeap] = formatMiB(peak())
	c, err := s.Counts(context.Background())
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "reopened: %+v\n", c)
	if c.SeenURLs < p.URLs {
		err = fmt.Errorf("%d URLs are left of %d that were flushed before the kill", c.SeenURLs, p.URLs)
	}
	return errors.Join(err, s.Close())
}
