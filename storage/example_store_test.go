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

// A nightStore leases URLs between 22:00 and 06:00 UTC only. It embeds the engine's own type, not
// the interface storage.Store, so that it is still an Inspector, as reports and the suite of
// package storagetest need. A *bolt.Store can be embedded in the same way.
type nightStore struct {
	*memory.Store
}

var (
	_ storage.Store     = nightStore{}
	_ storage.Inspector = nightStore{}
)

// Lease leases nothing by day: then Wait.Until is the evening at the earliest.
func (s nightStore) Lease(
	ctx context.Context, now time.Time, ttl time.Duration, max int,
) ([]storage.Lease, storage.Wait, error) {
	evening := nextOpening(now)
	if !evening.After(now) {
		return s.Store.Lease(ctx, now, ttl, max)
	}
	// A call with max 0 still returns expired leases to their queues and says what remains, so that
	// a crawl without URLs ends by day as well.
	leases, wait, err := s.Store.Lease(ctx, now, ttl, 0)
	if wait.RemainingWorkKind != storage.RemainingNone && wait.Until.Before(evening) {
		wait.Until = evening
	}
	return leases, wait, err
}

// nextOpening returns now if it is night, and otherwise 22:00 of the same day.
func nextOpening(now time.Time) time.Time {
	now = now.UTC()
	if h := now.Hour(); h < 6 || h >= 22 {
		return now
	}
	return time.Date(now.Year(), now.Month(), now.Day(), 22, 0, 0, 0, time.UTC)
}

// A Store of one's own wraps an engine and changes one method. Here no URL is leased by day.
func ExampleStore() {
	ctx := context.Background()
	store := nightStore{memory.New(memory.Config{})}
	defer store.Close()
	for _, s := range []string{"https://example.com/1", "https://example.com/2"} {
		u, err := decorum.ParseURL(s)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := store.Add(ctx, []storage.Entry{{URL: u}}, 0); err != nil {
			log.Fatal(err)
		}
	}
	for _, hour := range []int{5, 6, 22} {
		now := time.Date(2026, 11, 22, hour, 0, 0, 0, time.UTC)
		leases, wait, err := store.Lease(ctx, now, time.Minute, 1)
		if err != nil {
			log.Fatal(err)
		}
		if len(leases) == 0 {
			fmt.Printf("%s: no lease before %s\n", now.Format("15:04"), wait.Until.Format("15:04"))
			continue
		}
		fmt.Printf("%s: leased %v\n", now.Format("15:04"), leases[0].URL)
		if err := store.Ack(ctx, []storage.Ack{{Lease: leases[0], Outcome: storage.Done}}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 05:00: leased https://example.com/1
	// 06:00: no lease before 22:00
	// 22:00: leased https://example.com/2
}
