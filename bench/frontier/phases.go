package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/program"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

const (
	seenChecks    = 2_000_000 // known URLs offered
	maxLeases     = 1_000_000 // leases taken and acked
	leasesPerCall = 64        // leases of one call, as for 64 waiting workers

	unflushedURLs = 100_000 // new URLs added without a flush before the kill
)

// A benchmarkRun is the run of the child process that is measured.
type benchmarkRun struct {
	runOptions
	ctx                   context.Context
	order                 linkGenerator
	store                 *bolt.Store
	frontier              *frontier.Frontier
	linksOf               func(page int) []storage.Entry // links of a page in the order of the run
	pagesUntilSitesRepeat int                            // number of pages after which linksOf repeats the sites
}

// openRun opens the store of p.
func openRun(p runOptions) (*benchmarkRun, error) {
	s, err := bolt.Open(p.StoreFile, bolt.Options{})
	if err != nil {
		return nil, err
	}
	// The scope has a pattern, as most crawls have.
	scope := frontier.NewScope(frontier.ScopeConfig{
		Mode:    frontier.AnyScope,
		Exclude: []*regexp.Regexp{regexp.MustCompile(`\.(zip|exe|iso)$`)},
	}, nil)
	w := &benchmarkRun{runOptions: p, ctx: context.Background(), order: linkGenerator{p.Origins}, store: s,
		frontier: frontier.New(s, frontier.Config{Scope: scope})}
	w.linksOf, w.pagesUntilSitesRepeat = w.order.scatteredLinksOfPage, max(1, p.Origins/linksPerPage)
	if p.Order == "paged" {
		w.linksOf, w.pagesUntilSitesRepeat = w.order.mostlyInternalLinksOfPage, p.Origins
	}
	return w, nil
}

// runPhases prints the figures of p, then adds URLs until the process is killed.
func runPhases(p runOptions) error {
	w, err := openRun(p)
	if err != nil {
		return err
	}
	// Measure the phases, and the heap over all of them.
	peak := trackPeakHeap()
	for _, phase := range []struct {
		name string
		run  func() error
	}{{"discover", w.measureDiscoverNew}, {"seen", w.measureRediscoverSeen}, {"pages", w.measureDiscoverMixed},
		{"lease", w.measureLeaseAndAck}} {
		if err := w.runPhase(phase.name, phase.run); err != nil {
			return err
		}
	}
	printFigure(heapPeak, formatMiB(peak()))
	// Add URLs until the kill. After unflushedURLs of them, tell the parent to kill the process.
	for n := 0; ; n++ {
		if n == unflushedURLs/linksPerPage {
			fmt.Println("working on")
		}
		if _, err := w.frontier.Discover(w.ctx, w.linksOf(p.URLs/linksPerPage+1+n)...); err != nil {
			return err
		}
	}
}

// printFigure prints a figure for the parent process.
func printFigure(name, value string) { fmt.Printf("%s\t%s\n", name, value) }

// formatRate formats n events in d as events per second.
func formatRate(n int, d time.Duration) string { return fmt.Sprintf("%.0f", float64(n)/d.Seconds()) }

// formatMiB formats a number of bytes in MiB.
func formatMiB(bytes uint64) string { return fmt.Sprintf("%.0f", float64(bytes)/(1<<20)) }

// runPhase runs a phase, and writes its profiles if the run has a directory for them.
func (w *benchmarkRun) runPhase(name string, run func() error) error {
	if w.ProfileDir == "" {
		return run()
	}
	return program.RunProfiled(filepath.Join(w.ProfileDir, name), run)
}

// measureDiscoverNew discovers the new URLs and flushes them.
func (w *benchmarkRun) measureDiscoverNew() error {
	begin := time.Now()
	if err := w.discoverURLs(0, w.URLs); err != nil {
		return err
	}
	if err := w.store.Flush(w.ctx); err != nil {
		return err
	}
	spent := time.Since(begin)
	info, err := os.Stat(w.StoreFile)
	if err != nil {
		return err
	}
	files, err := w.store.FileStats()
	if err != nil {
		return err
	}
	printFigure(newRate, formatRate(w.URLs, spent))
	printFigure(urlsInLog, strconv.Itoa(files.UnappliedLogChanges))
	printFigure(diskPerURL, fmt.Sprintf("%.0f", float64(info.Size())/float64(w.URLs)))
	return nil
}

// discoverURLs discovers the pages of the URLs from one number up to another, with one goroutine per
// CPU. It fails if a link was known.
func (w *benchmarkRun) discoverURLs(from, to int) error {
	begin := time.Now()
	var next, added atomic.Int64
	next.Store(int64(from / linksPerPage))
	err := program.RunWorkers(runtime.NumCPU(), func(int) error {
		for {
			page := int(next.Add(1)) - 1
			if page*linksPerPage >= to {
				return nil
			}
			n, err := w.frontier.Discover(w.ctx, w.linksOf(page)...)
			if err != nil {
				return err
			}
			if done := added.Add(int64(n)); done%(1<<20) < int64(n) {
				w.logProgress(from+int(done), to, formatRate(int(done), time.Since(begin)))
			}
		}
	})
	if err == nil && int(added.Load()) != to-from {
		err = fmt.Errorf("%d of %d URLs were new, want all", added.Load(), to-from)
	}
	return err
}

// logProgress writes the rate so far to standard error.
func (w *benchmarkRun) logProgress(done, total int, rate string) {
	info, err := os.Stat(w.StoreFile)
	if err != nil {
		return
	}
	fmt.Fprintf(os.Stderr, "%s %d of %d, %s/s, file %s MiB\n", w.Order, done, total, rate,
		formatMiB(uint64(info.Size())))
}

// measureRediscoverSeen offers known URLs and prints their rate.
func (w *benchmarkRun) measureRediscoverSeen() error {
	rate, err := w.timeDiscoverSeen(seenChecks)
	if err == nil {
		printFigure(seenRate, rate)
	}
	return err
}

// timeDiscoverSeen discovers the links of random pages again, which are all known.
func (w *benchmarkRun) timeDiscoverSeen(checks int) (rate string, err error) {
	r := xorshift64(1)
	return w.timeDiscover(checks, 0, func(int) []storage.Entry {
		return w.linksOf(r.intN(w.URLs / linksPerPage))
	})
}

// measureDiscoverMixed discovers the links of pages on which nine of ten are known, and prints their
// rate.
func (w *benchmarkRun) measureDiscoverMixed() error {
	r := xorshift64(2)
	rate, err := w.timeDiscover(seenChecks/2, linksPerPage/10, func(n int) []storage.Entry {
		return w.mostlyKnownLinks(&r, n)
	})
	if err == nil {
		printFigure(mixedRate, rate)
	}
	return err
}

// mostlyKnownLinks returns the links of a page late in a crawl: the site's navigation, pages seen
// long ago, and one new link in ten.
func (w *benchmarkRun) mostlyKnownLinks(r *xorshift64, pageNumber int) []storage.Entry {
	page := r.intN(w.URLs / linksPerPage)
	entries := append(w.linksOf(page % w.pagesUntilSitesRepeat)[:navLinks],
		w.linksOf(page)...)[:linksPerPage-linksPerPage/10]
	for i := range linksPerPage / 10 {
		e := entries[len(entries)-1]
		u, err := e.URL.Resolve(fmt.Sprintf("/new/%d.html", pageNumber*linksPerPage+i))
		if err != nil {
			panic(err) // impossible: the path is valid
		}
		e.URL = u
		entries = append(entries, e)
	}
	return entries
}

// timeDiscover discovers at least checks links, in batches of pages, with one goroutine per CPU, and
// returns their rate. It fails if a page has another number of new links than newLinks. The time
// includes only the calls of the frontier, not the generation of pages.
func (w *benchmarkRun) timeDiscover(
	checks, newLinks int, page func(n int) []storage.Entry,
) (rate string, err error) {
	const batch = 400
	var spent time.Duration
	n := 0
	for ; n*linksPerPage < checks; n += batch {
		// Generate a batch of pages.
		pages := make(chan []storage.Entry, batch)
		for i := range batch {
			pages <- page(n + i)
		}
		close(pages)
		// Discover their links. The crawler, too, leaves out links that it has offered recently.
		begin := time.Now()
		err := program.RunWorkers(runtime.NumCPU(), func(int) error {
			for entries := range pages {
				entries = slices.DeleteFunc(entries, func(e storage.Entry) bool {
					return w.frontier.WasRecentlyOffered(e.URL)
				})
				n, err := w.frontier.Discover(w.ctx, entries...)
				if err == nil && n != newLinks {
					err = fmt.Errorf("%d links of a page were new, want %d", n, newLinks)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return "", err
		}
		spent += time.Since(begin)
	}
	return formatRate(n*linksPerPage, spent), nil
}

// measureLeaseAndAck leases URLs of the hosts in turn, acks them one by one, as workers do, and
// flushes the acks.
func (w *benchmarkRun) measureLeaseAndAck() error {
	total := min(maxLeases, w.URLs/2)
	now := time.Now()
	begin := time.Now()
	for taken := 0; taken < total; {
		now = now.Add(time.Millisecond)
		leases, _, err := w.store.Lease(w.ctx, now, time.Hour, leasesPerCall)
		if err != nil {
			return err
		}
		if len(leases) == 0 {
			return fmt.Errorf("no lease after %d", taken)
		}
		// Each host is due again at once, so that the next calls find enough due hosts.
		for _, l := range leases {
			ack := storage.Ack{Lease: l, HostState: &storage.HostState{Due: now, LostVisitDelay: time.Second}}
			if err := w.store.Ack(w.ctx, []storage.Ack{ack}); err != nil {
				return err
			}
		}
		taken += len(leases)
	}
	if err := w.store.Flush(w.ctx); err != nil {
		return err
	}
	printFigure(leaseRate, formatRate(total, time.Since(begin)))
	return nil
}

// trackPeakHeap samples every 10 ms how many bytes objects take in the heap, including dead ones
// that are not swept yet. peak ends the sampling and returns the maximum.
func trackPeakHeap() (peak func() uint64) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	return trackPeak(10*time.Millisecond, func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	})
}
