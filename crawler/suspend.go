package crawler

import (
	"context"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// suspendReason says why a host asks for a longer rest than the crawl waits for;
// empty if it does not.
func suspendReason(p politeness.Policy, v politeness.FinishedVisit) string {
	switch {
	case v.RetryAfter > p.MaxRetryAfter:
		return "it asks to be left alone for longer than the crawl waits"
	case v.CrawlDelay > p.MaxCrawlDelay:
		return "its Crawl-delay is longer than max_crawl_delay"
	}
	return ""
}

// suspendHost lets nobody wait for the host of o until then. Holds are of
// origins, and the rest is the host's: while one of them were only not due, a
// crawl would wait for all.
func (c *Crawler) suspendHost(ctx context.Context, o decorum.Origin, until time.Time) error {
	if err := c.Frontier.Hold(ctx, o, until, true); err != nil {
		return err
	}
	others, err := c.defaultPortAndNotedOrigins(ctx, o.Host())
	for _, other := range others {
		if err == nil && other != o {
			err = c.Frontier.HoldOriginIfKnown(ctx, other, until, true)
		}
	}
	return err
}

// ShouldStaySuspended reports whether an origin that an earlier run has set aside is of a
// host that is not due, and asks for a longer rest than this run waits for.
func (c *Crawler) ShouldStaySuspended(o storage.OriginInfo) bool {
	now := c.now()
	policy := c.Policy.ForHost(o.Origin.Host(), now)
	return o.HostState.Due.After(now) &&
		(o.HostState.LostVisitDelay > policy.MaxRetryAfter || DecodeHostStats(o.HostState.EncodedStats).CrawlDelay > policy.MaxCrawlDelay)
}
