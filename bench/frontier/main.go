// The program frontier measures the frontier and its store at the size of a
// real crawl:
//
//	go run ./bench/frontier -urls 1000000,5000000,20000000
//
// For each size a process of its own discovers so many new URLs over 100,000
// origins through frontier.Discover, asks for seen ones, leases and acks, and is
// killed with SIGKILL in the middle of more; then the store is opened again.
// A run that finds a URL new that is not, or one missing after the kill, fails.
// The clock of new/s stops when all is durable; what of it is in the log then,
// and not in its place, is counted beside it: much of a small run, and no more
// of a large one. The file is in the cache of the system when it is opened again.
// The orders are scattered, each URL of another origin than the one before, and
// paged, 50 links of a page, four of five of its own site. Progress goes to
// standard error, a table to standard output.
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

// A runOptions is one run, as it is handed to the child.
type runOptions struct {
	Order      string
	URLs       int
	Origins    int
	StoreFile  string
	ProfileDir string // directory for CPU and heap profiles; "" for none
}

func main() {
	urls := flag.String("urls", "1000000,5000000,20000000", "how many URLs: one run for each")
	orders := flag.String("order", "scattered,paged", "orders of discovery")
	origins := flag.Int("origins", 100_000, "how many origins")
	dir := flag.String("dir", "", "where the files go (default: a temporary directory)")
	profile := flag.String("profile", "", "directory for profiles of the processes")
	child := flag.String("child", "", "a plan, for the program itself")
	flag.Parse()
	program.Exit("bench/frontier", run(*urls, *orders, *origins, *dir, *profile, *child))
}

func run(urls, orders string, origins int, dir, profile, child string) error {
	if child != "" {
		var p runOptions
		if err := json.Unmarshal([]byte(child), &p); err != nil {
			return err
		}
		return runPhases(p)
	}
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

// figureNames are the figures in the order of the table.
func figureNames() []string {
	return []string{newRate, urlsInLog, diskPerURL, seenRate, mixedRate, leaseRate, heapPeak, reopenTime, reopenHeap}
}

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

// measureKillAndReopen runs the plan in a child, kills it, and opens what it left.
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
	figures := make(map[string]string)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), "\t")
		if !ok { // it is in the middle of its work
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

// measureReopen opens the store of a killed process, which must hold at least what was
// flushed.
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
