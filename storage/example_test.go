package storage_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A URL is added once, leased when its host is due, and acked. The ack says when the host is due
// again: until then the store leases no URL of it.
func Example() {
	ctx, now := context.Background(), time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	var store storage.Store = memory.New(memory.Config{})
	defer store.Close()
	var entries []storage.Entry
	for _, s := range []string{"https://example.com/1", "https://example.com/2", "https://example.com/1"} {
		u, err := decorum.ParseURL(s)
		if err != nil {
			log.Fatal(err)
		}
		entries = append(entries, storage.Entry{URL: u})
	}
	results, err := store.Add(ctx, entries, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(storage.CountAdded(results), "of", len(results), "are new")

	lease := func(now time.Time) []storage.Lease {
		leases, wait, err := store.Lease(ctx, now, time.Minute, 10)
		if err != nil {
			log.Fatal(err)
		}
		if len(leases) == 0 {
			fmt.Println("nothing is due for", wait.Until.Sub(now))
		}
		for _, l := range leases {
			fmt.Println("leased", l.URL)
		}
		return leases
	}
	first := lease(now)
	due := now.Add(5 * time.Second)
	ack := storage.Ack{Lease: first[0], Outcome: storage.Done, HostState: &storage.HostState{Due: due}}
	if err := store.Ack(ctx, []storage.Ack{ack}); err != nil {
		log.Fatal(err)
	}
	lease(now)
	lease(due)
	// Output:
	// 2 of 3 are new
	// leased https://example.com/1
	// nothing is due for 5s
	// leased https://example.com/2
}
