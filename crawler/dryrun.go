package crawler

import (
	"context"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// skipPageInDryRun ends the walk of a page in a run that scouts: all has been asked that is
// asked before a visit, but for what time will tell. The page counts as done, and
// its host's clock stays as it is.
func (c *Crawler) skipPageInDryRun(ctx context.Context, l storage.Lease, cl gate.Clearance) (storage.Ack, error) {
	origin, now := cl.URL().Origin(), c.now()
	delay, _, err := c.hostDelayAndNextAllowedTime(ctx, origin, now)
	if err == nil {
		err = refuseLongCrawlDelay(c.politenessPolicyOf(origin.Host(), now), delay, now)
	}
	if err != nil {
		return c.handleUnvisited(ctx, l, err)
	}
	if c.Hooks.SkippedInDryRun != nil {
		c.Hooks.SkippedInDryRun(l, cl)
	}
	return storage.Ack{Outcome: storage.Done}, nil
}

// refuseLongCrawlDelay returns why the pages of a host are set aside that asks for this rest;
// nil if it is not longer than the policy lets the crawl wait.
func refuseLongCrawlDelay(policy politeness.Policy, delay time.Duration, now time.Time) error {
	if delay <= policy.MaxCrawlDelay {
		return nil
	}
	return &gate.OriginPostponedError{Until: now.Add(suspendDuration), Suspended: true,
		Reason: fmt.Sprintf("its Crawl-delay of %v is longer than max_crawl_delay, %v", delay, policy.MaxCrawlDelay)}
}
