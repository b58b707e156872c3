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
// Begin reading at measureKillAndReopen for the parent and at runPhases (phases.go) for the child.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
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
}

func main() {
	urls := flag.String("urls", "1000000,5000000,20000000", "numbers of URLs: one run for each")
	orders := flag.String("order", "scattered,paged", "orders of discovery")
	origins := flag.Int("origins", 100_000, "number of origins")
	dir := flag.String("dir", "", "directory for the files (default: a temporary directory)")
	profile := flag.String("profile", "", "directory for profiles of the child processes")
	child := flag.String("child", "", "task of a child process, as JSON; the program sets it itself")
	flag.Parse()
	program.Exit("bench/frontier", run(*urls, *orders, *origins, *dir, *profile, *child))
}

// run is the child if it has a task, and otherwise runs a child for each order and size and prints
// their figures.
func run(urls, orders string, origins int, dir, profile, child string) error {
	if child != "" {
		var p runOptions
		if err := json.Unmarshal([]byte(child), &p); err != nil {
			return err
		}
		return runPhases(p)
	}
	// Measure each combination with a new store.
	base, err := os.MkdirTemp(dir, "bench-frontier-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	t := table.New(os.Stdout, append([]string{"order", "URLs"}, figureNames()...)...)
	for order := range strings.SplitSeq(orders, ",") {
		for size := range strings.SplitSeq(urls, ",") {
			n, err := strconv.Atoi(size)
			if err != nil {
				return err
			}
			p := runOptions{order, n, origins, filepath.Join(base, "frontier.db"), profile}
			figures, err := measureKillAndReopen(p)
			if err != nil {
				return err
			}
			row := []any{order, size}
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
