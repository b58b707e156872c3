package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A crawl without a network: Next returns each discovered URL when its host is due, and Ack ends
// its lease, until nothing is left.
func Example() {
	ctx := context.Background()
	home, err := decorum.ParseURL("https://example.com/")
	if err != nil {
		log.Fatal(err)
	}
	scope := frontier.NewScope(frontier.ScopeConfig{Mode: frontier.HostScope}, []decorum.URL{home})
	f := frontier.New(memory.New(memory.Config{}), frontier.Config{Scope: scope})
	if _, err := f.Discover(ctx, storage.Entry{URL: home, Source: storage.SourceSeed}); err != nil {
		log.Fatal(err)
	}
	links := map[string][]string{"/": {"/about", "/", "https://elsewhere.example/"}, "/about": {"/"}}
	for {
		lease, err := f.Next(ctx) // waits until a host is due
		if errors.Is(err, frontier.ErrEmpty) {
			fmt.Println("the end")
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(lease.Source, lease.URL)
		var found []storage.Entry
		for _, ref := range links[lease.URL.PathAndQuery()] {
			if u, err := lease.URL.Resolve(ref); err == nil {
				found = append(found, storage.Entry{URL: u, Source: storage.SourceLink, Depth: lease.Depth + 1})
			}
		}
		// Queue the links before the ack: a crash in between repeats the visit and loses no link.
		added, err := f.Discover(ctx, found...)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(found), "links,", added, "new")
		host := &storage.HostState{Due: time.Now().Add(10 * time.Millisecond)}
		if err := f.Ack(ctx, storage.Ack{Lease: lease, Outcome: storage.Done, HostState: host}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// seed https://example.com/
	// 3 links, 1 new
	// link https://example.com/about
	// 1 links, 0 new
	// the end
}
