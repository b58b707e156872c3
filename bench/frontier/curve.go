package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/program"
)

const (
	curveSeenChecks = 500_000   // known URLs offered at each point of a curve
	diskProbeBytes  = 256 << 20 // bytes written to measure the disk alone
)

// curveColumns are the headings of a curve, with the widths of its columns.
var curveColumns = []string{
	"  order", "      URLs", "  new/s", " seen/s", "CPU us/URL", "written B/URL", "read B/URL", "disk B/URL",
	"heap MiB", "anon RSS MiB", "mapped MiB", "disk seq MiB/s", "disk random MiB/s",
}

// runCurves runs a child for the curve of each order, which prints a row at each point. points are
// numbers of URLs, "" the default of each order.
func runCurves(p runOptions, points string, orders []string) error {
	fmt.Println(strings.Join(curveColumns, "  "))
	for _, p.Order = range orders {
		var err error
		if p.CurvePoints, err = parseSizes(cmp.Or(points, defaultCurves[p.Order])); err != nil {
			return err
		}
		if !isAscending(p.CurvePoints) {
			return fmt.Errorf("the points of a curve, rounded up to pages of %d URLs, must ascend: %v", linksPerPage,
				p.CurvePoints)
		}
		cmd, err := program.TaskCommand("-child", p)
		if err != nil {
			return err
		}
		cmd.Stdout = os.Stdout
		if err := cmd.Run(); err != nil {
			return err
		}
		if err := os.Remove(p.StoreFile); err != nil {
			return err
		}
	}
	return nil
}

// isAscending reports whether each point is higher than the one before, and the first than 0.
func isAscending(points []int) bool {
	last := 0
	for _, n := range points {
		if n <= last {
			return false
		}
		last = n
	}
	return true
}

// runCurve discovers URLs up to each point of p in one file, and prints the figures of the way from
// the point before to out.
func runCurve(p runOptions, out io.Writer, diskBytes int) error {
	w, err := openRun(p)
	if err != nil {
		return err
	}
	from := 0
	for _, to := range p.CurvePoints {
		err := w.runPhase(fmt.Sprintf("%s-%d", p.Order, to), func() error {
			return w.measurePoint(from, to, out, diskBytes)
		})
		if err != nil {
			return errors.Join(err, w.store.Close())
		}
		from = to
	}
	return w.store.Close()
}

// measurePoint discovers the URLs between two points and prints a row to out.
func (w *benchmarkRun) measurePoint(from, to int, out io.Writer, diskBytes int) error {
	// Discover new URLs until they are durable.
	heapPeak, rssPeak := trackPeakHeap(), trackPeakAnonymousRSS()
	before, err := readProcess()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := w.discoverURLs(from, to); err != nil {
		return err
	}
	if err := w.store.Flush(w.ctx); err != nil {
		return err
	}
	spent := time.Since(began)
	after, err := readProcess()
	if err != nil {
		return err
	}

	// Offer known URLs of the whole file.
	w.URLs = to
	seen, err := w.timeDiscoverSeen(curveSeenChecks)
	if err != nil {
		return err
	}
	// Measure the disk alone.
	sequential, random, err := measureDisk(filepath.Dir(w.StoreFile), diskBytes)
	if err != nil {
		return err
	}
	info, err := os.Stat(w.StoreFile)
	if err != nil {
		return err
	}
	urls := float64(to - from)
	for i, cell := range []string{
		w.Order, strconv.Itoa(to), formatRate(to-from, spent), seen,
		fmt.Sprintf("%.1f", (after.cpuSeconds-before.cpuSeconds)*1e6/urls),
		fmt.Sprintf("%.0f", float64(after.written-before.written)/urls),
		fmt.Sprintf("%.0f", float64(after.read-before.read)/urls),
		fmt.Sprintf("%.0f", float64(info.Size())/float64(to)),
		formatMiB(heapPeak()), formatMiB(rssPeak()), formatMiB(after.mappedRSS),
		formatMiB(sequential), formatMiB(random),
	} {
		fmt.Fprintf(out, "%*s  ", len(curveColumns[i]), cell)
	}
	_, err = fmt.Fprintln(out)
	return err
}
