package crawler

import (
	"bytes"
	"context"
	"errors"
	"net"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier/sitemap"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// receiveRobots tells the gate what came back for a robots.txt, and the
// frontier what follows from it. The URL whose turn it was goes back and waits
// the delay just learned.
func (c *Crawler) receiveRobots(ctx context.Context, v *Visit) (storage.Ack, error) {
	ack := storage.Ack{Outcome: storage.Again}
	if !v.Lease.For.IsZero() {
		ack.Outcome = storage.Done // a hop is an errand of its own
	}
	if v.brokenOff {
		c.Gate.Forget(v.Clearance) // no news of the server: the next one may ask
		return storage.Ack{Outcome: storage.Again}, nil
	}
	if v.unsent() && v.Lease.For.IsZero() {
		c.Gate.Forget(v.Clearance) // no request left: the refusal was ours
		c.Log.Warn("not visited", "origin", v.URL().Origin(), "error", v.Err)
		return ack, c.Frontier.Hold(ctx, v.URL().Origin(), v.End.Add(asideFor), true)
	}
	ctx = afterwards(ctx) // what came back is learnt, even when the crawl is being halted
	lesson, err := c.Gate.Learn(ctx, v.End, v.Clearance, v.Response, v.Err)
	if err != nil {
		return ack, err
	}
	// After a hop to another host, the origins of this one must know of its pause.
	if _, _, err := c.pace(ctx, lesson.Origin, v.End); err != nil {
		return ack, err
	}
	return ack, c.follow(ctx, v.URL(), lesson, v.Err)
}

// follow acts on what was learnt of an origin's robots.txt by asking for from;
// failed is why no answer came, if none did.
func (c *Crawler) follow(ctx context.Context, from decorum.URL, lesson robots.Lesson, failed error) error {
	switch {
	case !lesson.Hop.IsZero():
		return c.followHop(ctx, from, lesson)
	case !lesson.Open:
		if n := lesson.Closed.Attempts; n&(n-1) == 0 { // the first time, and ever more seldom
			c.Log.Warn("origin closed: its robots.txt cannot be had", "origin", lesson.Origin,
				"why", lesson.Closed.Why, "attempts", n, "again_at", lesson.Closed.Until)
		}
		return c.Frontier.Hold(ctx, lesson.Origin, lesson.Closed.Until, lesson.Closed.Dormant || noSuchHost(failed))
	}
	return c.Frontier.Hold(ctx, lesson.Origin, time.Time{}, false)
}

// noSuchHost reports whether the name of the host is not known to DNS: a
// foreground crawl need not wait for it to appear.
func noSuchHost(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// followHop queues the target of a robots.txt redirect on its own host, to be
// paced there like any visit, and keeps the origin's pages waiting for it.
func (c *Crawler) followHop(ctx context.Context, from decorum.URL, lesson robots.Lesson) error {
	hop := storage.Entry{URL: lesson.Hop, Source: storage.Robots, Class: storage.First,
		For: lesson.Origin, Referrer: from.String()}
	// The hold comes first: the visit to the hop ends it.
	if err := c.Frontier.Hold(ctx, lesson.Origin, lesson.Closed.Until, lesson.Closed.Dormant); err != nil {
		return err
	}
	_, err := c.Frontier.Discover(ctx, hop)
	return err
}

// sitemapNesting is how deep sitemap indexes may lead to further indexes, and
// how many redirects may lead to a sitemap.
const sitemapNesting = 3

// receiveSitemap discovers what a sitemap lists. What could be read of a
// broken one counts.
func (c *Crawler) receiveSitemap(ctx context.Context, v *Visit) (storage.Ack, error) {
	switch {
	case v.brokenOff:
		return storage.Ack{Outcome: storage.Again}, nil
	case v.Response == nil, passing(v.Status()):
		return c.again(v, c.Policy.RetryIn(v.Lease.Attempt+1)), nil
	}
	ctx = afterwards(ctx)
	ack := storage.Ack{Outcome: storage.Done}
	if to, ok := v.Response.Location(); ok {
		return ack, c.discoverListed(ctx, v, []sitemap.Entry{{URL: to, Index: true}})
	}
	if !v.OK() {
		return ack, nil
	}
	return ack, c.readSitemap(ctx, v)
}

func (c *Crawler) readSitemap(ctx context.Context, v *Visit) error {
	const batch = 1000
	var listed []sitemap.Entry
	var failed error
	v.Err = sitemap.Read(bytes.NewReader(v.Response.Body), v.URL(), sitemap.Limits{}, func(e sitemap.Entry) error {
		if listed = append(listed, e); len(listed) == batch {
			failed, listed = c.discoverListed(ctx, v, listed), listed[:0]
		}
		return failed
	})
	if failed != nil {
		return failed
	}
	if v.Err != nil {
		c.Log.Warn("sitemap is damaged; what could be read of it counts", "url", v.URL(), "error", v.Err)
	}
	return c.discoverListed(ctx, v, listed)
}

// discoverListed queues what a sitemap lists: pages, or further sitemaps.
func (c *Crawler) discoverListed(ctx context.Context, v *Visit, listed []sitemap.Entry) error {
	entries := make([]storage.Entry, 0, len(listed))
	for _, s := range listed {
		e := storage.Entry{URL: s.URL, Source: storage.Sitemap, Class: storage.Usual,
			Depth: 1, Referrer: v.URL().String()}
		if s.Index {
			e.Source, e.Class, e.Depth = storage.Robots, storage.Early, v.Lease.Depth+1
			if e.Depth > sitemapNesting {
				continue
			}
		}
		entries = append(entries, e)
	}
	_, err := c.Frontier.Discover(ctx, entries...)
	return err
}
