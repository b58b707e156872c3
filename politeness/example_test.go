package politeness_test

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
)

// The rest of a host is the longest of the configured delay, the Crawl-delay of robots.txt, and the
// delays that follow from its answer.
func ExamplePolicy() {
	policy := politeness.Policy{Delay: 2 * time.Second, JitterFunc: func() float64 { return 0 }}
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	visit := func(took time.Duration) politeness.FinishedVisit {
		return politeness.FinishedVisit{Start: start, End: start.Add(took), Status: http.StatusOK}
	}
	quick, slow, asked, busy := visit(time.Second), visit(3*time.Second), visit(time.Second), visit(time.Second)
	asked.CrawlDelay = 10 * time.Second
	busy.Status, busy.RetryAfter, busy.Health.ConsecutiveFailures = http.StatusServiceUnavailable, time.Minute, 1
	for _, v := range []politeness.FinishedVisit{quick, slow, asked, busy} {
		next := policy.NextVisit(v)
		fmt.Println("due at", next.Due.Format(time.TimeOnly), "after a rest of", next.Delay, "and",
			next.Health.ConsecutiveFailures, "failures")
	}
	// Output:
	// due at 12:00:03 after a rest of 2s and 0 failures
	// due at 12:00:06 after a rest of 3s and 0 failures
	// due at 12:00:11 after a rest of 10s and 0 failures
	// due at 12:01:01 after a rest of 1m0s and 2 failures
}

// A Limiter remembers the last visit: it refuses a permit before the host is due, whatever the
// caller's NotBefore says.
func ExampleLimiter() {
	policy, limits := politeness.Policy{}, politeness.NewLimiter(politeness.LimiterConfig{})
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	permit, decision := limits.Reserve(now, "example.com", politeness.PermitRequest{NotBefore: now})
	if decision.Action != decorum.Proceed {
		log.Fatal(decision.Err())
	}
	fmt.Println(permit.Host(), permit.WasIssued())
	// Make the visit, and report its end:
	end := now.Add(200 * time.Millisecond)
	next := policy.NextVisit(politeness.FinishedVisit{Start: now, End: end, Status: http.StatusOK})
	limits.ReleaseAfterTransfer(permit, end)
	limits.SetNextVisitAndCountBytes(permit.Host(), next, 4096)

	_, decision = limits.Reserve(end.Add(300*time.Millisecond), "example.com", politeness.PermitRequest{NotBefore: now})
	fmt.Println(decision.Action, errors.Is(decision.Err(), decorum.NotDue), decision.Err())
	_, decision = limits.Reserve(next.Due, "example.com", politeness.PermitRequest{NotBefore: next.Due})
	fmt.Println(decision.Action, decision.Err())
	// Output:
	// example.com true
	// postpone true the host is not due for another 700ms
	// proceed <nil>
}

// A site's owner asks the operator to slow down, and then to stop. The most restrictive brake of a host
// and of its domains applies.
func ExampleBrakes() {
	var brakes politeness.Brakes
	defer brakes.NotifyOnChange(func() { fmt.Println("the brakes have changed") })()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	slow := politeness.Brake{
		Host: "example.com", IncludesSubdomains: true, Delay: time.Minute,
		Reason: "a busy day", Until: now.Add(24 * time.Hour),
	}
	stop := politeness.Brake{Host: "shop.example.com", Stop: true, Reason: "request of the owner"}
	for _, b := range []politeness.Brake{slow, stop} {
		if err := brakes.Set(b); err != nil {
			log.Fatal(err)
		}
	}
	for _, host := range []string{"www.example.com", "shop.example.com", "example.org"} {
		if b, ok := brakes.ForHost(host, now); ok {
			fmt.Println(host, b.Decision(b.Until).Err())
		}
	}
	// Output:
	// the brakes have changed
	// the brakes have changed
	// www.example.com a brake slows example.com until 2026-11-23T12:00:00Z: a busy day
	// shop.example.com a brake stops shop.example.com: request of the owner
}

// A host may be visited at night only.
func ExampleWindow() {
	window, err := politeness.ParseWindow("22:00-06:00", "Europe/Prague")
	if err != nil {
		log.Fatal(err)
	}
	evening := time.Date(2026, 11, 22, 19, 30, 0, 0, time.UTC)
	fmt.Println(window.IsOpen(evening), window.NextOpen(evening))
	// Output:
	// false 2026-11-22 21:00:00 +0000 UTC
}
