package bolt_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// A crawl that was closed, or killed after a Flush, continues from its file: what was queued is leased, and
// what was leased and not acked is leased again.
func Example() {
	dir, err := os.MkdirTemp("", "crawl")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file, ctx, now := filepath.Join(dir, "frontier.db"), context.Background(), time.Now()

	store, err := bolt.Open(file, bolt.Options{})
	if err != nil {
		log.Fatal(err)
	}
	u, err := decorum.ParseURL("https://example.com/")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := store.Add(ctx, []storage.Entry{{URL: u, Source: storage.SourceSeed}}, 0); err != nil {
		log.Fatal(err)
	}
	if err := store.Flush(ctx); err != nil { // from here on, the URL is on the disk
		log.Fatal(err)
	}
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}

	again, err := bolt.Open(file, bolt.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer again.Close()
	leases, _, err := again.Lease(ctx, now, time.Minute, 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range leases {
		fmt.Println("leased", l.URL, "from", l.Source)
	}
	// Output:
	// leased https://example.com/ from seed
}
