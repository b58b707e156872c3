// Package forecast computes how long a crawl takes and how many requests it makes, from the number
// of pages that each host has. It simulates the crawl visit by visit in simulated time, and takes
// each delay from the crawl's own politeness.Policy, so that forecast and crawl follow the same
// rules.
//
//	limits := forecast.CrawlLimits{Start: time.Now(), Workers: 8}
//	results, end := limits.Simulate(hosts) // hosts is a []forecast.HostWorkload
//
// Begin reading at CrawlLimits.Simulate, then at step and makeVisit.
//
// A simulation runs in the caller's goroutine and holds no lock. It makes no request and reads no
// clock. It does not predict pages that are found by links, redirects, or failures.
package forecast
