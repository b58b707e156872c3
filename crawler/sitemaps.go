package crawler

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/frontier/sitemap"
	"github.com/decorum-crawler/decorum/storage"
)

// sitemapNesting is how many sitemap indexes may lead to a sitemap, one from the
// other.
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
		if _, err := c.Frontier.Discover(ctx, redirectedSitemap(v, to)); err != nil {
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

// redirectedSitemap returns the errand to where a sitemap redirects to: what
// was vouched for it is vouched for that.
func redirectedSitemap(v *Visit, to decorum.URL) storage.Entry {
	e := redirected(v, to)
	e.Source, e.Depth = storage.Robots, v.Lease.Depth
	return e
}

func (c *Crawler) readSitemap(ctx context.Context, v *Visit) error {
	r := c.newSitemapReader(ctx, v)
	var dates lastmods
	failed, damage := r.each(func(listed []sitemap.Entry) error {
		dates.add(listed)
		return c.discoverListed(ctx, v, listed)
	})
	if failed != nil {
		return failed
	}
	if v.spool != nil && v.spool.Truncated() {
		damage = errSitemapCut
	}
	if v.Err = damage; damage != nil {
		c.logDamage(ctx, v, damage)
	}
	r.tellFlaws()
	if !c.Settings.Revisit.Wanted() || !dates.mean(v.End) {
		return nil
	}
	return c.recallListed(ctx, r)
}

// logDamage logs a fault of a sitemap, as a warning only the first time in a run, so
// that many hosts with sitemaps beyond a limit cannot fill the log with warnings.
func (c *Crawler) logDamage(ctx context.Context, v *Visit, damage error) {
	level := slog.LevelInfo
	if !c.damaged.Swap(true) {
		level = slog.LevelWarn
	}
	c.Log.Log(ctx, level, "sitemap is damaged; what could be read of it counts", "url", v.URL(), "error", damage)
}

// errSitemapCut is the fault of a sitemap that, compressed, is longer than the memory
// for bodies.
var errSitemapCut = errors.New("it is longer than the memory for bodies can hold (--body-memory)")

// A sitemapReader reads a sitemap as far as it may speak for what it lists.
type sitemapReader struct {
	crawler *Crawler
	ctx     context.Context
	visit   *Visit
	known   map[decorum.Origin]bool // whether they vouch for it
	flaws   []sitemap.Flaw          // the first
	more    int                     // beyond these
	outside int                     // pages that are not for it to list
	example decorum.URL             // the first of them
}

func (c *Crawler) newSitemapReader(ctx context.Context, v *Visit) *sitemapReader {
	return &sitemapReader{crawler: c, ctx: ctx, visit: v, known: map[decorum.Origin]bool{}}
}

// mayList reports whether an entry is for the sitemap to list, by the rule of
// sitemaps.org. The sitemaps of an index may be anywhere: who vouches for the
// index wants them read.
func (r *sitemapReader) mayList(e sitemap.Entry) bool {
	return e.Within || e.Index || r.vouched(e.URL.Origin())
}

// warrant is the context of an errand to a sitemap, and of those to which it
// leads: whose robots.txt names it, and as what.
func warrant(voucher decorum.Origin, named decorum.URL) []byte {
	w := voucher.String() + " " + named.String()
	if len(w) > storage.MaxContext {
		w = voucher.String()
	}
	return []byte(w)
}

// readWarrant returns who vouches for the sitemap of v, and what it was named
// as: the index or the redirect that led to it, if one did.
func readWarrant(v *Visit) (voucher decorum.Origin, named decorum.URL) {
	origin, sitemap, _ := strings.Cut(string(v.Lease.Context), " ")
	voucher, _ = originOf(origin)
	named, err := decorum.ParseURL(sitemap)
	if err != nil { // only the origin is kept
		named = v.URL()
	}
	return voucher, named
}

// vouched reports whether a sitemap may list URLs of o, whatever its own place:
// the robots.txt of a host names it, or an index that led to it, and so vouches
// for the host's URLs, on any scheme and port. Where the rules of o are not known
// yet it may: scope and robots.txt are asked all the same, and the sitemap is not
// read again when they are.
func (r *sitemapReader) vouched(o decorum.Origin) bool {
	voucher, named := readWarrant(r.visit)
	if voucher.Host() == o.Host() {
		return true
	}
	names, asked := r.known[o]
	if !asked {
		gate := r.crawler.Gate
		rules, err := gate.Rules(r.ctx, o)
		names = err != nil || rules == nil
		if !names {
			sitemaps, err := gate.Sitemaps(r.ctx, o)
			names = err != nil || slices.Contains(sitemaps, named)
		}
		r.known[o] = names
	}
	return names
}

// maxFlaws is how many flaws of a sitemap are told one by one.
const maxFlaws = 5

func (r *sitemapReader) flaw(f sitemap.Flaw) {
	if len(r.flaws) < maxFlaws {
		r.flaws = append(r.flaws, f)
	} else {
		r.more++
	}
}

// tellFlaws logs what of the sitemap could not be used.
func (r *sitemapReader) tellFlaws() {
	for _, f := range r.flaws {
		r.crawler.Log.Info("sitemap has an entry that is not used", "url", r.visit.URL(), "why", f)
	}
	if r.more > 0 {
		r.crawler.Log.Info("sitemap has more entries that are not used", "url", r.visit.URL(), "count", r.more)
	}
	if r.outside > 0 {
		r.crawler.Log.Info("sitemap lists pages of sites that do not name it in robots.txt; they are not queued",
			"url", r.visit.URL(), "count", r.outside, "first", r.example)
	}
}

// each calls do for the entries of the sitemap, some at a time. It returns the
// error of do, and what is wrong with the sitemap.
func (r *sitemapReader) each(do func([]sitemap.Entry) error) (failed, damage error) {
	listed := make([]sitemap.Entry, 0, sitemapBatch)
	flush := func() error {
		failed = do(listed)
		listed = listed[:0]
		return failed
	}
	r.flaws, r.more, r.outside = nil, 0, 0
	options := sitemap.Options{Bytes: r.crawler.Settings.MaxSitemapBody, Flaw: r.flaw}
	damage = sitemap.Read(r.visit.OpenBody(), r.visit.URL(), options, func(e sitemap.Entry) error {
		if !r.mayList(e) {
			if r.outside++; r.outside == 1 {
				r.example = e.URL
			}
			return nil
		}
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
	pages, sitemaps := make([]storage.Entry, 0, len(listed)), []storage.Entry(nil)
	for _, s := range listed {
		e := storage.Entry{URL: s.URL, Source: storage.Sitemap, Rank: frontier.PriorityRank(s.Priority),
			Depth: 1, Referrer: v.URL().String()}
		if s.Index {
			e.Source, e.Class, e.Rank, e.Depth = storage.Robots, storage.Early, 0, v.Lease.Depth+1
			e.Context = v.Lease.Context // who vouches for the index vouches for its sitemaps
			if e.Depth > sitemapNesting {
				c.Log.Warn("sitemap is not read: indexes are nested too deeply", "url", s.URL, "index", v.URL(), "limit", sitemapNesting)
				continue
			}
		}
		switch {
		case s.URL == s.URL.Origin().RobotsURL(): // the gate asks for it, and knows when
		case s.Index:
			sitemaps = append(sitemaps, e)
		default:
			pages = append(pages, e)
		}
	}
	if _, err := c.Frontier.Discover(ctx, pages...); err != nil {
		return err
	}
	voucher, _ := readWarrant(v)
	return c.queueSitemaps(ctx, voucher, sitemaps)
}
