package crawler

import (
	"context"
	"sync"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/recent"
	"github.com/decorum-crawler/decorum/storage"
)

// queueSitemaps queues sitemaps to which the robots.txt of voucher leads, by itself
// or by indexes: as many as Settings.MaxSitemapsPerHost grants its host. Who names sitemaps
// without end takes nothing from what other hosts name, and does not fill the
// queue: pages are bounded by scope, errands by this.
func (c *Crawler) queueSitemaps(ctx context.Context, declaringOrigin decorum.Origin, sitemaps []storage.Entry) error {
	host := declaringOrigin.Host()
	for len(sitemaps) > 0 {
		remaining, warned := c.hostSitemapQuotas.remainingAndMarkWarned(host, c.Settings.MaxSitemapsPerHost)
		if remaining == 0 {
			if !warned {
				c.Log.Warn("the robots.txt of a host leads to more sitemaps than are read; those beyond are passed over",
					"host", host, "limit", c.Settings.MaxSitemapsPerHost, "first", sitemaps[0].URL)
			}
			return nil
		}
		offered := sitemaps[:min(remaining, len(sitemaps))]
		added, err := c.Frontier.Discover(ctx, offered...)
		c.hostSitemapQuotas.addQueued(host, added)
		if err != nil {
			return err
		}
		sitemaps = sitemaps[len(offered):]
	}
	return nil
}

// hostSitemapQuotas count the sitemaps that were queued in this run, by the host whose
// robots.txt led to them. A host that is forgotten, since many others came after it, begins anew.
type hostSitemapQuotas struct {
	mu    sync.Mutex // guards hosts and the quotas in it
	hosts recent.Map[string, *hostSitemapQuota]
}

type hostSitemapQuota struct {
	queuedSitemaps int
	limitLogged    bool // that it is used up
}

// remainingAndMarkWarned returns how many more of most a host may have, and, if none, whether that
// was said before.
func (q *hostSitemapQuotas) remainingAndMarkWarned(host string, maxSitemaps int) (remaining int, warned bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.getOrCreate(host)
	if remaining = max(0, maxSitemaps-h.queuedSitemaps); remaining > 0 {
		return remaining, false
	}
	warned, h.limitLogged = h.limitLogged, true
	return 0, warned
}

// addQueued counts n more of a host.
func (q *hostSitemapQuotas) addQueued(host string, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.getOrCreate(host).queuedSitemaps += n
}

// getOrCreate returns the quota of a host. It requires q.mu.
func (q *hostSitemapQuotas) getOrCreate(host string) *hostSitemapQuota {
	h, ok := q.hosts.Get(host, maxCached)
	if !ok {
		h = &hostSitemapQuota{}
		q.hosts.Put(host, h, maxCached)
	}
	return h
}
