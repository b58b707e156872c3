package memory_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A store in memory suits tests, and crawls that end with their process. Config.MaxURLs bounds it: an Add
// that would exceed it changes nothing.
func Example() {
	store := memory.New(memory.Config{MaxURLs: 2})
	defer store.Close()
	add := func(urls ...string) error {
		var entries []storage.Entry
		for _, s := range urls {
			u, err := decorum.ParseURL(s)
			if err != nil {
				log.Fatal(err)
			}
			entries = append(entries, storage.Entry{URL: u})
		}
		_, err := store.Add(context.Background(), entries, 0)
		return err
	}
	fmt.Println(add("https://a.example/", "https://b.example/"))
	fmt.Println(errors.Is(add("https://c.example/"), storage.ErrFull))

	leases, _, err := store.Lease(context.Background(), time.Now(), time.Minute, 10)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(leases), "hosts are due")
	// Output:
	// <nil>
	// true
	// 2 hosts are due
}
