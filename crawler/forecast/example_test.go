package forecast_test

import (
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/crawler/forecast"
	"github.com/decorum-crawler/decorum/politeness"
)

// Ten pages of a host take 46 seconds: each visit takes 1 s, and 4 s pass between two visits.
func ExampleCrawlLimits_Simulate() {
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	policy := politeness.Policy{Delay: 4 * time.Second, AdaptiveFactor: -1}.WithDefaults()
	shop := forecast.HostWorkload{
		Name: "shop.example", Due: start, VisitDuration: time.Second, BytesPerPage: 20_000,
		Origins:                       []forecast.OriginWorkload{{Pages: 10}},
		PolicyAt:                      func(time.Time) politeness.Policy { return policy },
		RobotsDelayAndNextAllowedTime: func(at time.Time) (time.Duration, time.Time) { return 0, at },
	}
	limits := forecast.CrawlLimits{Start: start, Workers: 8}
	results, _ := limits.Simulate([]forecast.HostWorkload{shop})
	fmt.Println(results[0].Pages, "pages in", results[0].LastVisitEnd.Sub(start))
	// Output:
	// 10 pages in 46s
}
