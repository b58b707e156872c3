package crawler

import (
	"context"
	"net/http"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

// redirect discovers where v redirects to, and notes whether its origin sends
// everybody to https. A loop ends here: where it closes, it leads to a URL that
// is not new.
func (c *Crawler) redirect(ctx context.Context, v *Visit) error {
	if err := c.noteScheme(ctx, v); err != nil || v.Response == nil {
		return err
	}
	to, ok := v.Response.Location()
	if !ok {
		return nil
	}
	added, err := c.Frontier.Discover(ctx, redirected(v, to))
	c.tally.redirects.Add(1)
	c.tally.redirectsNew.Add(int64(added))
	return err
}

// redirected returns the entry of a redirect's target: one redirect more, and no
// deeper than what led there, which it stands for.
func redirected(v *Visit, to decorum.URL) storage.Entry {
	return storage.Entry{URL: to, Source: storage.Redirect, Class: v.Lease.Class, Rank: v.Lease.Rank,
		Depth: v.Lease.Depth, Redirects: v.Lease.Redirects + 1,
		Referrer: v.URL().String(), Context: v.Lease.Context}
}

// noteScheme tells the frontier whether a page on http redirects to its twin on
// https, and whether one on https leads back or cannot be reached there. Other
// failures say nothing of the origin.
func (c *Crawler) noteScheme(ctx context.Context, v *Visit) error {
	u := v.URL()
	if v.Response == nil {
		if u.Origin().Scheme() != "https" || v.unsent() || failureOf(v.Err) != Unreachable {
			return nil
		}
		return c.Frontier.Answered(ctx, u, false, true)
	}
	if passing(v.Status()) || v.Status() == http.StatusNotModified {
		return nil
	}
	to, _ := v.Response.Location()
	twin, plain := frontier.Twin(u)
	back, leadsBack := frontier.Twin(to)
	return c.Frontier.Answered(ctx, u, plain && to == twin, leadsBack && back == u)
}
