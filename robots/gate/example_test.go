package gate_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage/memory"
)

const exampleFile = "User-agent: *\nDisallow: /cart\nAllow: /cart/help\nCrawl-delay: 2\n"

// A Gate says when a robots.txt must be fetched, stores the answer, and clears URLs by its rules while
// these are in force.
func ExampleGate() {
	agent, err := robots.NewAgent("examplebot")
	if err != nil {
		fmt.Println(err)
		return
	}
	robotsGate := gate.New(gate.Config{Agent: agent}, memory.New(memory.Config{}))
	ctx, now := context.Background(), time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, s := range []string{"https://shop.example/", "https://shop.example/", "https://shop.example/cart/7"} {
		u, err := decorum.ParseURL(s)
		if err != nil {
			fmt.Println(err)
			return
		}
		clearance, err := robotsGate.Check(ctx, now, u)
		switch {
		case errors.Is(err, decorum.Disallowed):
			fmt.Println(err)
		case err != nil:
			fmt.Println("not now:", err)
		case clearance.IsForRobots():
			fmt.Println("first", clearance.URL())
			answer := &decorum.Response{URL: clearance.URL(), Status: http.StatusOK,
				Header: http.Header{}, Body: []byte(exampleFile)}
			result, err := robotsGate.RecordFetch(ctx, now, clearance, answer, nil)
			fmt.Println(result.Outcome, result.HasRulesInForce, err)
		default:
			fmt.Println("cleared", clearance.URL())
		}
	}
	// Output:
	// first https://shop.example/robots.txt
	// rules true <nil>
	// cleared https://shop.example/
	// robots https://shop.example/cart/7: disallowed by robots.txt: disallow: /cart (line 2, group *)
}
