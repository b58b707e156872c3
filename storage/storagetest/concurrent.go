package storagetest

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// testConcurrent has many workers crawl at the same time. A page leads to
// others, each visit takes and moves time, and a ledger keeps watch.
func testConcurrent(f *fixture) {
	const workers, hosts, depth = 8, 5, 9
	l := &ledger{fixture: f, done: make(map[string]int), out: make(map[string]int), due: make(map[string]time.Time)}
	for h := range hosts {
		f.add(1, page(fmt.Sprintf("https://h%d.example/1", h)))
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { l.work(1 << depth) })
	}
	wg.Wait()
	if f.Failed() {
		return
	}
	f.next(at(1e6), storage.Wait{RemainingWork: storage.RemainingNone})
	if want := hosts * (1<<depth - 1); len(l.done) != want {
		f.Errorf("%d URLs were visited, want %d", len(l.done), want)
	}
	for u, n := range l.done {
		if n != 1 {
			f.Errorf("%s was done %d times", u, n)
		}
	}
}

// A ledger is what was seen from outside the Store.
type ledger struct {
	*fixture
	clock atomic.Int64 // milliseconds since start

	mu   sync.Mutex
	done map[string]int
	out  map[string]int       // visits under way, of a host
	due  map[string]time.Time // of hosts with one slot
}

// work visits until nothing is left. Page n links to 2n and 2n+1, below limit.
func (l *ledger) work(limit int) {
	for !l.Failed() {
		ms := l.clock.Load()
		now := start.Add(time.Duration(ms) * time.Millisecond)
		leases, next, err := l.store.Lease(l.Context(), now, 1e4*time.Hour, 2)
		if err != nil {
			l.Errorf("Lease: %v", err)
			return
		}
		for _, lease := range leases {
			l.visit(lease, now, limit)
		}
		switch wait := next.Until.Sub(now); {
		case len(leases) > 0:
		case next.RemainingWork == storage.RemainingNone:
			return
		case wait < time.Hour: // not the end of a lease
			l.clock.CompareAndSwap(ms, ms+wait.Milliseconds()+1)
		default:
			runtime.Gosched()
		}
	}
}

// visit records a visit, its links and its end.
func (l *ledger) visit(lease storage.Lease, now time.Time, limit int) {
	host := lease.URL.Origin().Host()
	slots := 1 + int(host[1]-'0')%3 // h0 has one, h1 two, …
	l.begin(host, slots, now, lease)
	var n int
	fmt.Sscanf(lease.URL.PathAndQuery(), "/%d", &n)
	var links []storage.Entry
	for _, child := range []int{2 * n, 2*n + 1, n} { // the last is known
		if child < limit {
			links = append(links, page(fmt.Sprintf("https://%s/%d", host, child)))
		}
	}
	if _, err := l.store.Add(l.Context(), links, 0); err != nil {
		l.Errorf("Add: %v", err)
	}
	due := now.Add(3 * time.Millisecond)
	l.end(host, due, lease)
	err := l.store.Ack(l.Context(), []storage.Ack{{Lease: lease, Host: &storage.HostState{Due: due, Slots: slots}}})
	if err != nil {
		l.Errorf("Ack: %v", err)
	}
}

func (l *ledger) begin(host string, slots int, now time.Time, lease storage.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out[host]++; l.out[host] > slots {
		l.Errorf("%d visits of %s at a time, want at most %d", l.out[host], host, slots)
	}
	if lease.Host.Due.After(now) || slots == 1 && l.due[host].After(now) {
		l.Errorf("%s was leased at %v, due at %v", host, now, latest(lease.Host.Due, l.due[host]))
	}
}

func (l *ledger) end(host string, due time.Time, lease storage.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out[host]--
	l.due[host] = latest(l.due[host], due)
	l.done[lease.URL.String()]++
}
