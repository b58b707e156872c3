package daemontest

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// FillLargeCrawl queues one URL of each of hosts hosts, and visits one host in 50, with various outcomes.
func FillLargeCrawl(t testing.TB, store storage.Store, hosts int) {
	t.Helper()
	// Queue the URLs in batches.
	const batch = 1000
	for first := 0; first < hosts; first += batch {
		entries := make([]storage.Entry, 0, batch)
		for i := first; i < min(first+batch, hosts); i++ {
			u, err := decorum.ParseURL(fmt.Sprintf("https://h%d.wildcard.example/page/%d", i, i%7))
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, storage.Entry{URL: u, Source: storage.SourceLink})
		}
		if _, err := store.Add(context.Background(), entries, 0); err != nil {
			t.Fatal(err)
		}
	}
	// Lease one URL in 50, and ack them with encoded statistics of their hosts.
	now := time.Now()
	leases, _, err := store.Lease(context.Background(), now, time.Hour, hosts/50)
	if err != nil {
		t.Fatal(err)
	}
	hostStats := []byte{1} // the format version; the numbers below are the fields of crawler.HostStats
	for _, n := range []int64{1, 1, 2, 0, 1000, 200, now.UnixNano(), 0, 5e8, 0, 1e9, 0, 0, 0, 0, 0} {
		hostStats = binary.AppendUvarint(hostStats, uint64(n))
	}
	for i, l := range leases {
		outcome := []storage.AckOutcome{storage.Done, storage.RetryAt, storage.RevisitAt}[i%3]
		host := storage.HostState{Due: now.Add(time.Duration(i) * time.Second),
			LostVisitDelay: time.Second, EncodedStats: hostStats}
		ack := storage.Ack{Lease: l, Outcome: outcome, NotBefore: now.Add(time.Hour), HostState: &host}
		err := store.Ack(context.Background(), []storage.Ack{ack})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// HeapInUse runs the garbage collector, and returns the number of reachable bytes on the heap.
func HeapInUse() int64 {
	runtime.GC()
	runtime.GC() // frees the objects that the first run finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
