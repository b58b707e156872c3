package storagetest

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/storage"
)

// testConcurrentCrawl runs a crawl with 8 workers. Each page links to others, and the workers advance the
// clock. A concurrentCrawl checks that the Store obeys due times and slots, and that every page is
// visited once.
func testConcurrentCrawl(f *fixture) {
	const workers, hosts, depth = 8, 5, 9
	l := &concurrentCrawl{fixture: f, visitsPerURL: make(map[string]int), activeVisitsPerHost: make(map[string]int),
		hostDueAt: make(map[string]time.Time)}
	for h := range hosts {
		f.mustAddExactly(1, linkEntry(fmt.Sprintf("https://h%d.example/1", h)))
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { l.runWorker(1 << depth) })
	}
	wg.Wait()
	if f.Failed() {
		return
	}
	// Nothing is left, and each page of the binary tree of each host was visited once.
	f.wantWait(at(1e6), storage.Wait{RemainingWorkKind: storage.RemainingNone})
	if want := hosts * (1<<depth - 1); len(l.visitsPerURL) != want {
		f.Errorf("%d URLs were visited, want %d", len(l.visitsPerURL), want)
	}
	for u, n := range l.visitsPerURL {
		if n != 1 {
			f.Errorf("%s was visited %d times", u, n)
		}
	}
}

// A concurrentCrawl records the visits of all workers, independently of the Store.
type concurrentCrawl struct {
	*fixture
	elapsedMillis atomic.Int64 // the clock, in milliseconds since startTime

	mu                  sync.Mutex // guards visitsPerURL, activeVisitsPerHost and hostDueAt
	visitsPerURL        map[string]int
	activeVisitsPerHost map[string]int
	hostDueAt           map[string]time.Time // end of the last visit of each host, plus its delay
}

// runWorker visits pages until no URL is left. Page n links to pages 2n and 2n+1, if below limit.
func (l *concurrentCrawl) runWorker(limit int) {
	for !l.Failed() {
		ms := l.elapsedMillis.Load()
		now := startTime.Add(time.Duration(ms) * time.Millisecond)
		leases, wait, err := l.store.Lease(l.Context(), now, 1e4*time.Hour, 2)
		if err != nil {
			l.Errorf("Lease: %v", err)
			return
		}
		for _, lease := range leases {
			l.visitPage(lease, now, limit)
		}
		// Without a lease, end, advance the clock to the next due time, or let other workers run.
		switch delay := wait.Until.Sub(now); {
		case len(leases) > 0:
		case wait.RemainingWorkKind == storage.RemainingNone:
			return
		case delay < time.Hour: // a due time, not the expiry of a lease
			l.elapsedMillis.CompareAndSwap(ms, ms+delay.Milliseconds()+1)
		default:
			runtime.Gosched()
		}
	}
}

// visitPage makes one visit: it checks and records the start, adds the links, records the end and acks.
func (l *concurrentCrawl) visitPage(lease storage.Lease, now time.Time, limit int) {
	host := lease.URL.Origin().Host()
	slots := 1 + int(host[1]-'0')%3 // h0 has one slot, h1 two, h2 three, h3 one again
	l.checkAndRecordVisitBegin(host, slots, now, lease)
	var n int
	fmt.Sscanf(lease.URL.PathAndQuery(), "/%d", &n)
	var links []storage.Entry
	for _, child := range []int{2 * n, 2*n + 1, n} { // the last one is a duplicate
		if child < limit {
			links = append(links, linkEntry(fmt.Sprintf("https://%s/%d", host, child)))
		}
	}
	if _, err := l.store.Add(l.Context(), links, 0); err != nil {
		l.Errorf("Add: %v", err)
	}
	due := now.Add(3 * time.Millisecond)
	l.recordVisitEnd(host, due, lease)
	err := l.store.Ack(l.Context(), []storage.Ack{{Lease: lease,
		HostState: &storage.HostState{Due: due, Slots: slots}}})
	if err != nil {
		l.Errorf("Ack: %v", err)
	}
}

// checkAndRecordVisitBegin checks the slots and the due time of the host, and records the visit.
func (l *concurrentCrawl) checkAndRecordVisitBegin(host string, slots int, now time.Time, lease storage.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.activeVisitsPerHost[host]++; l.activeVisitsPerHost[host] > slots {
		l.Errorf("%d visits of %s at a time, want at most %d", l.activeVisitsPerHost[host], host, slots)
	}
	if lease.HostState.Due.After(now) || slots == 1 && l.hostDueAt[host].After(now) {
		l.Errorf("%s was leased at %v, due at %v", host, now, timecmp.Later(lease.HostState.Due, l.hostDueAt[host]))
	}
}

func (l *concurrentCrawl) recordVisitEnd(host string, due time.Time, lease storage.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.activeVisitsPerHost[host]--
	l.hostDueAt[host] = timecmp.Later(l.hostDueAt[host], due)
	l.visitsPerURL[lease.URL.String()]++
}
