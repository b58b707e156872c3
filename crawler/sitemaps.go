package crawler

import (
	"bytes"
	"context"

	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/frontier/sitemap"
	"github.com/decorum-crawler/decorum/storage"
)

// sitemapNesting is how deep sitemap indexes may lead to further indexes, and
// how many redirects may lead to a sitemap.
const sitemapNesting = 3

// sitemapBatch is how many entries of a sitemap are handled at a time.
const sitemapBatch = 1000

// receiveSitemap discovers what a sitemap lists, and recalls pages that it says
// were modified. What could be read of a broken one counts. Where pages are
// visited again, so are sitemaps.
func (c *Crawler) receiveSitemap(ctx context.Context, v *Visit) (storage.Ack, error) {
	if v.brokenOff {
		return storage.Ack{Outcome: storage.Again}, nil
	}
	if ack, failed := c.failed(v); failed {
		return ack, nil
	}
	ctx = afterwards(ctx)
	if to, ok := v.Response.Location(); ok {
		if err := c.discoverListed(ctx, v, []sitemap.Entry{{URL: to, Index: true}}); err != nil {
			return storage.Ack{Outcome: storage.Again}, err
		}
	}
	if v.OK() {
		if err := c.readSitemap(ctx, v); err != nil {
			return storage.Ack{Outcome: storage.Again}, err
		}
	}
	return c.settle(ctx, v)
}

func (c *Crawler) readSitemap(ctx context.Context, v *Visit) error {
	var dates lastmods
	failed, damage := eachListed(v, func(listed []sitemap.Entry) error {
		dates.add(listed)
		return c.discoverListed(ctx, v, listed)
	})
	if failed != nil {
		return failed
	}
	if v.Err = damage; damage != nil {
		c.Log.Warn("sitemap is damaged; what could be read of it counts", "url", v.URL(), "error", damage)
	}
	if !c.Settings.Revisit.Wanted() || !dates.mean(v.End) {
		return nil
	}
	return c.recallListed(ctx, v)
}

// eachListed calls do for the entries of a sitemap, some at a time. It returns
// the error of do, and what is wrong with the sitemap.
func eachListed(v *Visit, do func([]sitemap.Entry) error) (failed, damage error) {
	listed := make([]sitemap.Entry, 0, sitemapBatch)
	flush := func() error {
		failed = do(listed)
		listed = listed[:0]
		return failed
	}
	damage = sitemap.Read(bytes.NewReader(v.Response.Body), v.URL(), sitemap.Options{}, func(e sitemap.Entry) error {
		if listed = append(listed, e); len(listed) == sitemapBatch {
			return flush()
		}
		return nil
	})
	if failed == nil && len(listed) > 0 {
		flush()
	}
	return failed, damage
}

// discoverListed queues what a sitemap lists: pages, or further sitemaps.
func (c *Crawler) discoverListed(ctx context.Context, v *Visit, listed []sitemap.Entry) error {
	entries := make([]storage.Entry, 0, len(listed))
	for _, s := range listed {
		e := storage.Entry{URL: s.URL, Source: storage.Sitemap, Rank: frontier.PriorityRank(s.Priority),
			Depth: 1, Referrer: v.URL().String()}
		if s.Index {
			e.Source, e.Class, e.Rank, e.Depth = storage.Robots, storage.Early, 0, v.Lease.Depth+1
			if e.Depth > sitemapNesting {
				continue
			}
		}
		if s.URL != s.URL.Origin().RobotsURL() { // the gate asks for it, and knows when
			entries = append(entries, e)
		}
	}
	_, err := c.Frontier.Discover(ctx, entries...)
	return err
}
