package redis_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// A process adds a URL, and another process with the same store open visits it.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "redis")
	check(err)
	defer os.RemoveAll(dir)
	c, err := redistest.StartCluster(ctx, dir, 1, 0)
	check(err)
	defer c.KillAll()

	// One master without a replica can only give DurabilityNone.
	opts := redis.Options{Addresses: c.Addrs(), Prefix: "books", Durability: redis.DurabilityNone}
	finder, err := redis.Open(ctx, opts)
	check(err)
	defer finder.Close()
	visitor, err := redis.Open(ctx, opts)
	check(err)
	defer visitor.Close()

	u, err := decorum.ParseURL("https://shop.example/")
	check(err)
	entry := storage.Entry{URL: u, PriorityClass: storage.ClassNormal, Source: storage.SourceLink}
	outcomes, err := finder.Add(ctx, []storage.Entry{entry}, 0)
	check(err)
	fmt.Println("added:", storage.CountAdded(outcomes))

	leases, _, err := visitor.Lease(ctx, time.Now(), time.Minute, 1)
	check(err)
	fmt.Println("leased:", leases[0].URL)
	// After the visit the host rests for two seconds, for all processes.
	rest := &storage.HostState{Due: time.Now().Add(2 * time.Second)}
	check(visitor.Ack(ctx, []storage.Ack{{Lease: leases[0], Outcome: storage.Done, HostState: rest}}))

	counts, err := finder.Counts(ctx)
	check(err)
	fmt.Println("queued:", counts.QueuedURLs, "seen:", counts.SeenURLs)
	// Output:
	// added: 1
	// leased: https://shop.example/
	// queued: 0 seen: 1
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
