package redis

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// openServerClock opens a store that goes by the servers' clocks.
func openServerClock(t testing.TB, c *redistest.Cluster, prefix string, opts Options) *Store {
	t.Helper()
	opts.Addresses, opts.Prefix = c.Addrs(), prefix
	s, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func pageEntry(url string) storage.Entry {
	return storage.Entry{URL: must1(decorum.ParseURL(url)), PriorityClass: storage.ClassNormal,
		Source: storage.SourceLink}
}

// pageEntries returns n entries for each host.
func pageEntries(hosts, n int) (entries []storage.Entry) {
	for h := range hosts {
		for i := range n {
			entries = append(entries, pageEntry(fmt.Sprintf("https://h%d.example/%d", h, i)))
		}
	}
	return entries
}

// A testProcess stands for one of several processes with the same store open.
type testProcess struct {
	*Store
	visits int
}

// A visitLog records the visits of several processes, and checks that they are polite.
type visitLog struct {
	testing.TB
	delay time.Duration

	mu      sync.Mutex           // guards active, endedAt and visits
	active  map[string]bool      // by host: whether a visit is under way
	endedAt map[string]time.Time // by host: the end of its last visit
	visits  map[string]int       // by URL
}

// visitAll visits URLs until none is left. After each visit the host rests for d.delay.
func (d *visitLog) visitAll(v *testProcess) {
	for {
		leases, next, err := v.Lease(d.Context(), time.Now(), time.Minute, 2)
		switch {
		case err != nil:
			d.Errorf("lease: %v", err)
			return
		case len(leases) == 0 && next.RemainingWorkKind == storage.RemainingNone:
			return
		case len(leases) == 0:
			time.Sleep(max(0, min(time.Until(next.Until), time.Until(next.PollAt))))
			continue
		}
		for _, l := range leases {
			d.recordStart(l)
			d.recordEnd(l)
			a := storage.Ack{Lease: l, HostState: &storage.HostState{Due: time.Now().Add(d.delay),
				LostVisitDelay: d.delay}}
			if err := v.Ack(d.Context(), []storage.Ack{a}); err != nil {
				d.Errorf("ack: %v", err)
			}
			v.visits++
		}
	}
}

func (d *visitLog) recordStart(l storage.Lease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	host := l.URL.Origin().Host()
	if d.active[host] {
		d.Errorf("%s has two visits at a time", host)
	}
	if since := time.Since(d.endedAt[host]); since < d.delay {
		d.Errorf("%s is visited after %v, want %v", host, since, d.delay)
	}
	d.active[host] = true
}

func (d *visitLog) recordEnd(l storage.Lease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	host := l.URL.Origin().Host()
	d.active[host] = false
	d.endedAt[host] = time.Now()
	d.visits[l.URL.String()]++
}

// Four processes on one store visit each URL once, and are together as polite as one process.
func TestFourProcesses(t *testing.T) {
	t.Parallel()
	const hosts, each = 60, 8
	c := redistest.StartClusterForTest(t, 3, 0)
	prefix := newPrefix()
	d := &visitLog{TB: t, delay: 20 * time.Millisecond, active: map[string]bool{},
		endedAt: map[string]time.Time{}, visits: map[string]int{}}
	var visitors []*testProcess
	for range 4 {
		visitors = append(visitors, &testProcess{Store: openServerClock(t, c, prefix,
			Options{Durability: DurabilityNone, PartitionRefreshInterval: 20 * time.Millisecond})})
	}
	results, err := visitors[0].Add(t.Context(), pageEntries(hosts, each), 0)
	must(t, err)
	if n := storage.CountAdded(results); n != hosts*each {
		t.Fatalf("%d URLs were added, want %d", n, hosts*each)
	}
	var wg sync.WaitGroup
	for _, v := range visitors {
		wg.Go(func() { d.visitAll(v) })
	}
	wg.Wait()
	if len(d.visits) != hosts*each {
		t.Errorf("%d URLs were visited, want %d", len(d.visits), hosts*each)
	}
	for u, n := range d.visits {
		if n != 1 {
			t.Errorf("%s was visited %d times", u, n)
		}
	}
	for _, v := range visitors {
		t.Logf("one of four made %d visits of %d", v.visits, hosts*each)
		if v.visits < hosts*each/16 {
			t.Errorf("one of four made %d visits of %d", v.visits, hosts*each)
		}
	}
}
