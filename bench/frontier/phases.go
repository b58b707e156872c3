package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/program"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

const (
	seenChecks = 2_000_000
	maxLeases  = 1_000_000
	inHand     = 64 // leases of a call, one for each worker that waits

	killedAfter = 100_000 // new URLs that nobody flushes
)

// A worker is the process that is measured.
type worker struct {
	plan
	ctx   context.Context
	web   web
	store *bolt.Store
	front *frontier.Frontier
	of    func(page int) []storage.Entry
	round int // pages until the same sites come again
}

// work makes the figures of a plan, then works on until it is killed.
func work(p plan) error {
	s, err := bolt.Open(p.File, bolt.Options{})
	if err != nil {
		return err
	}
	scope := frontier.NewScope(frontier.ScopeConfig{
		Within:  frontier.Any,
		Exclude: []*regexp.Regexp{regexp.MustCompile(`\.(zip|exe|iso)$`)},
	}, nil)
	w := &worker{plan: p, ctx: context.Background(), web: web{p.Origins}, store: s,
		front: frontier.New(s, frontier.Config{Scope: scope})}
	w.of, w.round = w.web.scattered, max(1, p.Origins/links)
	if p.Order == "paged" {
		w.of, w.round = w.web.paged, p.Origins
	}
	peak := watchHeap()
	for _, phase := range []struct {
		name string
		run  func() error
	}{{"discover", w.discover}, {"seen", w.seen}, {"pages", w.pages}, {"lease", w.lease}} {
		if err := w.profiled(phase.name, phase.run); err != nil {
			return err
		}
	}
	figure(heapPeak, mib(peak()))
	for n := 0; ; n++ { // until the kill
		if n == killedAfter/links {
			fmt.Println("working on")
		}
		if _, err := w.front.Discover(w.ctx, w.of(p.URLs/links+1+n)...); err != nil {
			return err
		}
	}
}

func figure(name, value string) { fmt.Printf("%s\t%s\n", name, value) }

func rate(n int, d time.Duration) string { return fmt.Sprintf("%.0f", float64(n)/d.Seconds()) }

func mib(bytes uint64) string { return fmt.Sprintf("%.0f", float64(bytes)/(1<<20)) }

// profiled runs a phase, and profiles it if that is asked for.
func (w *worker) profiled(name string, run func() error) error {
	if w.Profile == "" {
		return run()
	}
	return program.Profiled(filepath.Join(w.Profile, name), run)
}

// discover offers the URLs from one goroutine for each CPU, and makes them
// durable. Making the URLs up is part of the time.
func (w *worker) discover() error {
	begin := time.Now()
	var next, added atomic.Int64
	err := w.parallel(func() error {
		for {
			page := int(next.Add(1)) - 1
			if page*links >= w.URLs {
				return nil
			}
			n, err := w.front.Discover(w.ctx, w.of(page)...)
			if err != nil {
				return err
			}
			if done := added.Add(int64(n)); done%(1<<20) < int64(n) {
				w.progress(int(done), time.Since(begin))
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
	info, err := os.Stat(w.File)
	if err != nil {
		return err
	}
	if pages := (w.URLs + links - 1) / links; added.Load() != int64(pages*links) {
		return fmt.Errorf("%d of %d URLs were new, want all", added.Load(), pages*links)
	}
	files, err := w.store.FileStats()
	if err != nil {
		return err
	}
	figure(newRate, rate(int(added.Load()), spent))
	figure(inLog, strconv.Itoa(files.Log))
	figure(diskPerURL, fmt.Sprintf("%.0f", float64(info.Size())/float64(added.Load())))
	return nil
}

func (w *worker) progress(done int, spent time.Duration) {
	info, err := os.Stat(w.File)
	if err != nil {
		return
	}
	fmt.Fprintf(os.Stderr, "%s %d of %d, %s/s, file %s MiB\n", w.Order, done, w.URLs, rate(done, spent), mib(uint64(info.Size())))
}

// seen offers URLs that are known, each of another page.
func (w *worker) seen() error {
	r := random(1)
	return w.offer(seenRate, seenChecks, 0, func(int) []storage.Entry { return w.of(r.below(w.URLs / links)) })
}

// pages offers pages of which nine of ten links are known.
func (w *worker) pages() error {
	r := random(2)
	return w.offer(pageRate, seenChecks/2, links/10, func(n int) []storage.Entry { return w.revisited(&r, n) })
}

// revisited is the links of a page as crawls find them when most is known: the
// site's navigation, pages seen long ago, and one of ten that is new.
func (w *worker) revisited(r *random, fresh int) []storage.Entry {
	page := r.below(w.URLs / links)
	entries := append(w.of(page % w.round)[:nav], w.of(page)...)[:links-links/10]
	for i := range links / 10 {
		e := entries[len(entries)-1]
		u, err := e.URL.Resolve(fmt.Sprintf("/new/%d.html", fresh*links+i))
		if err != nil {
			panic(err) // cannot be
		}
		e.URL = u
		entries = append(entries, e)
	}
	return entries
}

// offer offers pages, of which so many links are new, from one goroutine for
// each CPU. Only the calls are timed.
func (w *worker) offer(name string, checks, fresh int, page func(n int) []storage.Entry) error {
	const together = 400
	var spent time.Duration
	for n := 0; n*links < checks; n += together {
		pages := make(chan []storage.Entry, together)
		for i := range together {
			pages <- page(n + i)
		}
		close(pages)
		begin := time.Now()
		err := w.parallel(func() error {
			for entries := range pages {
				entries = slices.DeleteFunc(entries, func(e storage.Entry) bool { return w.front.Knows(e.URL) }) // as the crawler does
				n, err := w.front.Discover(w.ctx, entries...)
				if err == nil && n != fresh {
					err = fmt.Errorf("%d links of a page were new, want %d", n, fresh)
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
	figure(name, rate(checks, spent))
	return nil
}

// parallel runs f in one goroutine for each CPU.
func (w *worker) parallel(f func() error) error {
	errs := make([]error, runtime.NumCPU())
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { errs[i] = f() })
	}
	group.Wait()
	return errors.Join(errs...)
}

// lease takes the hosts in turn and acks one by one, as workers do, and makes
// that durable.
func (w *worker) lease() error {
	total := min(maxLeases, w.URLs/2)
	now := time.Now()
	begin := time.Now()
	for taken := 0; taken < total; {
		now = now.Add(time.Millisecond)
		leases, _, err := w.store.Lease(w.ctx, now, time.Hour, inHand)
		if err != nil {
			return err
		}
		if len(leases) == 0 {
			return fmt.Errorf("no lease after %d", taken)
		}
		for _, l := range leases {
			ack := storage.Ack{Lease: l, Host: &storage.Host{Due: now, Gap: time.Second}}
			if err := w.store.Ack(w.ctx, []storage.Ack{ack}); err != nil {
				return err
			}
		}
		taken += len(leases)
	}
	if err := w.store.Flush(w.ctx); err != nil {
		return err
	}
	figure(leaseRate, rate(total, time.Since(begin)))
	return nil
}

// watchHeap samples the bytes of the heap that objects take up, dead ones that
// are not swept yet included; peak returns the most there were.
func watchHeap() (peak func() uint64) {
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
