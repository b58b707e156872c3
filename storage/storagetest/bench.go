package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

const (
	benchHosts = 1000
	benchBatch = 100 // entries of each Add, and leases of each Lease
)

// Bench measures the Stores that open returns, in URLs per second: Add of new URLs, Add of duplicates,
// and Lease with Ack.
func Bench(b *testing.B, open func(b testing.TB) storage.Store) {
	b.Run("Add new", func(b *testing.B) { benchAdd(b, open(b), true) })
	b.Run("Add seen", func(b *testing.B) { benchAdd(b, open(b), false) })
	b.Run("Lease and Ack", func(b *testing.B) { benchLease(b, open(b)) })
}

// newBenchBatch returns the entries of the n-th Add. Half of them have one host, as the links of a page
// often do.
func newBenchBatch(n int) []storage.Entry {
	entries := make([]storage.Entry, benchBatch)
	for i := range entries {
		host := n % benchHosts
		if i%2 == 0 {
			host = (n*7919 + i*104729) % benchHosts
		}
		entries[i] = linkEntry(fmt.Sprintf("https://host%d.example/section/page-%d-%d.html", host, n, i))
		entries[i].Referrer = "https://host0.example/from.html"
	}
	return entries
}

// benchAdd measures Add of new entries, or of duplicates.
func benchAdd(b *testing.B, s storage.Store, isNew bool) {
	defer s.Close()
	b.ReportAllocs()
	// Prepare the duplicates of 1,000 calls.
	const seen = 1000
	known := make([][]storage.Entry, 0, seen)
	if !isNew {
		for n := range seen {
			known = append(known, newBenchBatch(n))
			mustAdd(b, s, known[n])
		}
		if err := s.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	var spent time.Duration
	n := 0
	for b.Loop() {
		var entries []storage.Entry
		if isNew {
			b.StopTimer() // do not measure the parsing of URLs
			entries = newBenchBatch(n)
			b.StartTimer()
		} else {
			entries = known[n%seen]
		}
		begin := time.Now()
		mustAdd(b, s, entries)
		spent += time.Since(begin)
		n++
	}
	// The last changes must be durable, too.
	begin := time.Now()
	if err := s.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	spent += time.Since(begin)
	b.ReportMetric(float64(n*benchBatch)/spent.Seconds(), "urls/s")
}

func mustAdd(b *testing.B, s storage.Store, entries []storage.Entry) {
	if _, err := s.Add(b.Context(), entries, 0); err != nil {
		b.Fatal(err)
	}
}

// benchLease measures Lease and Ack of URLs of all hosts, without delays. When all URLs are visited it
// adds others while the timer is stopped.
func benchLease(b *testing.B, s storage.Store) {
	defer s.Close()
	b.ReportAllocs()
	var spent time.Duration
	added, taken := 0, 0
	for n := 0; b.Loop(); n++ {
		if taken == added {
			// Add 200,000 URLs without measuring that.
			b.StopTimer()
			for range 2000 {
				mustAdd(b, s, newBenchBatch(added/benchBatch))
				added += benchBatch
			}
			b.StartTimer()
		}
		begin := time.Now()
		now := startTime.Add(time.Duration(n) * time.Second)
		leases, _, err := s.Lease(b.Context(), now, time.Hour, benchBatch)
		if err != nil || len(leases) == 0 {
			b.Fatalf("%d leases (%v)", len(leases), err)
		}
		acks := make([]storage.Ack, len(leases))
		for i, l := range leases {
			acks[i] = storage.Ack{Lease: l, HostState: &storage.HostState{Due: now, Slots: 4}}
		}
		if err := s.Ack(b.Context(), acks); err != nil {
			b.Fatal(err)
		}
		taken += len(leases)
		spent += time.Since(begin)
	}
	b.ReportMetric(float64(taken)/spent.Seconds(), "urls/s")
}
