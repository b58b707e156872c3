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

// openShared opens a store of which the servers tell the time.
func openShared(t testing.TB, c *redistest.Cluster, prefix string, opts Options) *Store {
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

func page(url string) storage.Entry {
	return storage.Entry{URL: must1(decorum.ParseURL(url)), Class: storage.Usual, Source: storage.Link}
}

// pages returns n entries of each of so many hosts.
func pages(hosts, n int) (entries []storage.Entry) {
	for h := range hosts {
		for i := range n {
			entries = append(entries, page(fmt.Sprintf("https://h%d.example/%d", h, i)))
		}
	}
	return entries
}

// A visitor is one process of several on a store.
type visitor struct {
	*Store
	visits int
}

// A diary is what several visitors have done, as a site would see it.
type diary struct {
	testing.TB
	rest time.Duration

	mu   sync.Mutex
	out  map[string]bool
	end  map[string]time.Time
	done map[string]int
}

// crawl visits until nothing is left. A visit ends with the host's rest.
func (d *diary) crawl(v *visitor) {
	for {
		leases, next, err := v.Lease(d.Context(), time.Now(), time.Minute, 2)
		switch {
		case err != nil:
			d.Errorf("lease: %v", err)
			return
		case len(leases) == 0 && next.Left == storage.Nothing:
			return
		case len(leases) == 0:
			time.Sleep(max(0, min(time.Until(next.At), time.Until(next.Ask))))
			continue
		}
		for _, l := range leases {
			d.begin(l)
			d.finish(l)
			a := storage.Ack{Lease: l, Host: &storage.Host{Due: time.Now().Add(d.rest), Gap: d.rest}}
			if err := v.Ack(d.Context(), []storage.Ack{a}); err != nil {
				d.Errorf("ack: %v", err)
			}
			v.visits++
		}
	}
}

func (d *diary) begin(l storage.Lease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	host := l.URL.Origin().Host()
	if d.out[host] {
		d.Errorf("%s is visited by two", host)
	}
	if since := time.Since(d.end[host]); since < d.rest {
		d.Errorf("%s is visited after %v, want %v", host, since, d.rest)
	}
	d.out[host] = true
}

func (d *diary) finish(l storage.Lease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	host := l.URL.Origin().Host()
	d.out[host] = false
	d.end[host] = time.Now()
	d.done[l.URL.String()]++
}

// Four processes on one store visit each URL once, and each host as one would.
func TestSharedByFour(t *testing.T) {
	t.Parallel()
	const hosts, each = 60, 8
	c := redistest.Start(t, 3, 0)
	prefix := newPrefix()
	d := &diary{TB: t, rest: 20 * time.Millisecond, out: map[string]bool{}, end: map[string]time.Time{}, done: map[string]int{}}
	var visitors []*visitor
	for range 4 {
		visitors = append(visitors, &visitor{Store: openShared(t, c, prefix, Options{Durability: None, Refresh: 20 * time.Millisecond})})
	}
	fates, err := visitors[0].Add(t.Context(), pages(hosts, each), 0)
	must(t, err)
	if n := storage.CountAdded(fates); n != hosts*each {
		t.Fatalf("%d were added, want %d", n, hosts*each)
	}
	var wg sync.WaitGroup
	for _, v := range visitors {
		wg.Go(func() { d.crawl(v) })
	}
	wg.Wait()
	if len(d.done) != hosts*each {
		t.Errorf("%d were visited, want %d", len(d.done), hosts*each)
	}
	for u, n := range d.done {
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
