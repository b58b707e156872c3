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

// A new page rests for the geometric mean of the bounds. While it stays the same it rests longer, at
// most twice as long each time; when it changes it rests shorter.
func ExampleRevisitPolicy() {
	const day = 24 * time.Hour
	policy := frontier.RevisitPolicy{Mode: frontier.AdaptiveRevisit, MinInterval: day, MaxInterval: 30 * day}
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	var history *storage.VisitHistorySummary
	for _, hash := range []uint64{1, 1, 1, 2, 3, 4} {
		plan := policy.Plan(history, frontier.PageObservation{At: at, Status: 200, Hash: hash})
		fmt.Printf("changed: %t, next visit after %.1f days\n", plan.Changed, plan.Delay.Hours()/24)
		history, at = &plan.Summary, at.Add(plan.Delay)
	}
	// Output:
	// changed: false, next visit after 5.5 days
	// changed: false, next visit after 11.0 days
	// changed: false, next visit after 21.9 days
	// changed: true, next visit after 14.4 days
	// changed: true, next visit after 11.1 days
	// changed: true, next visit after 9.4 days
}
