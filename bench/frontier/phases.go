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
	seenChecks    = 2_000_000
	maxLeases     = 1_000_000
	leasesPerCall = 64 // leases of a call, one for each worker that waits

	unflushedURLs = 100_000 // new URLs that nobody flushes
)

// A benchmarkRun is the process that is measured.
type benchmarkRun struct {
	runOptions
	ctx                   context.Context
	order                 linkGenerator
	store                 *bolt.Store
	frontier              *frontier.Frontier
	linksOf               func(page int) []storage.Entry
	pagesUntilSitesRepeat int // pages until the same sites come again
}

// runPhases makes the figures of a plan, then works on until it is killed.
func runPhases(p runOptions) error {
	s, err := bolt.Open(p.StoreFile, bolt.Options{})
	if err != nil {
		return err
	}
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
	peak := trackPeakHeap()
	for _, phase := range []struct {
		name string
		run  func() error
	}{{"discover", w.measureDiscoverNew}, {"seen", w.measureRediscoverSeen}, {"pages", w.measureDiscoverMixed}, {"lease", w.measureLeaseAndAck}} {
		if err := w.runPhase(phase.name, phase.run); err != nil {
			return err
		}
	}
	printFigure(heapPeak, formatMiB(peak()))
	for n := 0; ; n++ { // until the kill
		if n == unflushedURLs/linksPerPage {
			fmt.Println("working on")
		}
		if _, err := w.frontier.Discover(w.ctx, w.linksOf(p.URLs/linksPerPage+1+n)...); err != nil {
			return err
		}
	}
}

func printFigure(name, value string) { fmt.Printf("%s\t%s\n", name, value) }

func formatRate(n int, d time.Duration) string { return fmt.Sprintf("%.0f", float64(n)/d.Seconds()) }

func formatMiB(bytes uint64) string { return fmt.Sprintf("%.0f", float64(bytes)/(1<<20)) }

// runPhase runs a phase, and profiles it if that is asked for.
func (w *benchmarkRun) runPhase(name string, run func() error) error {
	if w.ProfileDir == "" {
		return run()
	}
	return program.RunProfiled(filepath.Join(w.ProfileDir, name), run)
}

// measureDiscoverNew offers the URLs from one goroutine for each CPU, and makes them
// durable. Making the URLs up is part of the time.
func (w *benchmarkRun) measureDiscoverNew() error {
	begin := time.Now()
	var next, added atomic.Int64
	err := program.RunWorkers(runtime.NumCPU(), func(int) error {
		for {
			page := int(next.Add(1)) - 1
			if page*linksPerPage >= w.URLs {
				return nil
			}
			n, err := w.frontier.Discover(w.ctx, w.linksOf(page)...)
			if err != nil {
				return err
			}
			if done := added.Add(int64(n)); done%(1<<20) < int64(n) {
				w.logProgress(int(done), time.Since(begin))
			}
		}
	})
	if err != nil {
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
	if pages := (w.URLs + linksPerPage - 1) / linksPerPage; added.Load() != int64(pages*linksPerPage) {
		return fmt.Errorf("%d of %d URLs were new, want all", added.Load(), pages*linksPerPage)
	}
	files, err := w.store.FileStats()
	if err != nil {
		return err
	}
	printFigure(newRate, formatRate(int(added.Load()), spent))
	printFigure(urlsInLog, strconv.Itoa(files.UnappliedLogChanges))
	printFigure(diskPerURL, fmt.Sprintf("%.0f", float64(info.Size())/float64(added.Load())))
	return nil
}

func (w *benchmarkRun) logProgress(done int, spent time.Duration) {
	info, err := os.Stat(w.StoreFile)
	if err != nil {
		return
	}
	fmt.Fprintf(os.Stderr, "%s %d of %d, %s/s, file %s MiB\n", w.Order, done, w.URLs, formatRate(done, spent), formatMiB(uint64(info.Size())))
}

// measureRediscoverSeen offers URLs that are known, each of another page.
func (w *benchmarkRun) measureRediscoverSeen() error {
	r := xorshift64(1)
	return w.timeDiscover(seenRate, seenChecks, 0, func(int) []storage.Entry { return w.linksOf(r.intN(w.URLs / linksPerPage)) })
}

// measureDiscoverMixed offers pages of which nine of ten links are known.
func (w *benchmarkRun) measureDiscoverMixed() error {
	r := xorshift64(2)
	return w.timeDiscover(mixedRate, seenChecks/2, linksPerPage/10, func(n int) []storage.Entry { return w.mostlyKnownLinks(&r, n) })
}

// mostlyKnownLinks is the links of a page as crawls find them when most is known: the
// site's navigation, pages seen long ago, and one of ten that is new.
func (w *benchmarkRun) mostlyKnownLinks(r *xorshift64, pageNumber int) []storage.Entry {
	page := r.intN(w.URLs / linksPerPage)
	entries := append(w.linksOf(page % w.pagesUntilSitesRepeat)[:navLinks], w.linksOf(page)...)[:linksPerPage-linksPerPage/10]
	for i := range linksPerPage / 10 {
		e := entries[len(entries)-1]
		u, err := e.URL.Resolve(fmt.Sprintf("/new/%d.html", pageNumber*linksPerPage+i))
		if err != nil {
			panic(err) // cannot be
		}
		e.URL = u
		entries = append(entries, e)
	}
	return entries
}

// timeDiscover offers pages, of which so many links are new, from one goroutine for
// each CPU. Only the calls are timed.
func (w *benchmarkRun) timeDiscover(name string, checks, newLinks int, page func(n int) []storage.Entry) error {
	const batch = 400
	var spent time.Duration
	for n := 0; n*linksPerPage < checks; n += batch {
		pages := make(chan []storage.Entry, batch)
		for i := range batch {
			pages <- page(n + i)
		}
		close(pages)
		begin := time.Now()
		err := program.RunWorkers(runtime.NumCPU(), func(int) error {
			for entries := range pages {
				entries = slices.DeleteFunc(entries, func(e storage.Entry) bool { return w.frontier.WasRecentlyOffered(e.URL) }) // as the crawler does
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
			return err
		}
		spent += time.Since(begin)
	}
	printFigure(name, formatRate(checks, spent))
	return nil
}

// measureLeaseAndAck takes the hosts in turn and acks one by one, as workers do, and makes
// that durable.
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

// trackPeakHeap samples the bytes of the heap that objects take up, dead ones that
// are not swept yet included; peak returns the most there were.
func trackPeakHeap() (peak func() uint64) {
	var maxBytes atomic.Uint64
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() {
		metrics.Read(sample)
		maxBytes.Store(max(maxBytes.Load(), sample[0].Value.Uint64()))
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			read()
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-stopped
		read()
		return maxBytes.Load()
	}
}
