package crawler

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/extract"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/frontier/sitemap"
	"github.com/decorum-crawler/decorum/internal/recent"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// maxSitemapNesting is how many sitemap indexes may lead to a sitemap, one through the other.
const maxSitemapNesting = 3

// sitemapBatchSize is how many entries of a sitemap are handled at a time.
const sitemapBatchSize = 1000

// handleSitemap queues what a sitemap lists, and reschedules pages that it claims were modified. It
// uses what it can read of a damaged sitemap. Sitemaps are revisited if pages are.
func (p *prerequisites) handleSitemap(ctx context.Context, v *Visit) (leaseOutcome, error) {
	if v.interrupted {
		return leaseOutcome{outcome: storage.Requeue}, nil
	}
	if result, failed := p.outcomes.failureResult(v); failed {
		return result, nil
	}
	ctx = commitContext(ctx)
	if to, ok := v.Response.Location(); ok && (!isTriedSitemapXML(v) || mayBeSitemap(to)) {
		e := redirectEntry(v, to) // what declares the sitemap declares its target, too
		e.Source = storage.SourcePrerequisite
		if _, err := p.frontier.Discover(ctx, e); err != nil {
			return leaseOutcome{outcome: storage.Requeue}, err
		}
	}
	if v.OK() {
		if err := p.processFetchedSitemap(ctx, v); err != nil {
			return leaseOutcome{outcome: storage.Requeue}, err
		}
	}
	return p.outcomes.doneOrRevisit(ctx, v)
}

// processFetchedSitemap reads the sitemap of v: first to queue its entries, then, if the crawl
// revisits pages and the dates are credible, to reschedule pages.
func (p *prerequisites) processFetchedSitemap(ctx context.Context, v *Visit) error {
	r := &sitemapReader{prerequisites: p, ctx: ctx, visit: v, originDeclaresSitemap: map[decorum.Origin]bool{}}
	var dates sitemapLastmodSummary
	failed, damage := r.eachBatch(func(listed []sitemap.Entry) error {
		dates.addEntries(listed)
		return p.queueSitemapEntries(ctx, v, listed)
	})
	if failed != nil {
		return failed
	}
	switch {
	case v.bodySpool != nil && v.bodySpool.Truncated():
		damage = errSitemapTruncated
	case isSeed(v.Lease) && v.Response.BodyLimitExceeded:
		damage = errSeedSitemapTruncated
	}
	if isTriedSitemapXML(v) && errors.Is(damage, sitemap.ErrNotSitemap) {
		damage = nil // the site never said that it is one
	}
	// Damage is recorded with the visit, but what was read counts.
	if v.Err = damage; damage != nil {
		p.logSitemapDamage(ctx, v, damage)
	}
	r.logFlaws()
	if !p.settings.Revisit.IsEnabled() || !dates.hasCredibleDates(v.End) {
		return nil
	}
	return p.rescheduleModifiedPages(ctx, r)
}

// logSitemapDamage logs that a sitemap is damaged. Only the first in a run is a warning, so that
// many hosts with sitemaps beyond a limit cannot fill the log with warnings.
func (p *prerequisites) logSitemapDamage(ctx context.Context, v *Visit, damage error) {
	level := slog.LevelInfo
	if !p.sitemapDamageLogged.Swap(true) {
		level = slog.LevelWarn
	}
	p.log.Log(ctx, level, "sitemap is damaged; its readable part is used", "url", v.URL(), "error", damage)
}

// errSitemapTruncated is the error of a sitemap that, even compressed, exceeds the memory for
// bodies.
var errSitemapTruncated = errors.New("it is longer than the memory for bodies can hold (--body-memory)")

// errSeedSitemapTruncated is the error of a sitemap that is a seed, and so is fetched as a page is, and
// longer than a page may be.
var errSeedSitemapTruncated = errors.New("as a seed, it is longer than a page may be (fetch.max_body)")

// A sitemapReader reads a sitemap, and skips entries that the sitemap may not list.
type sitemapReader struct {
	prerequisites              *prerequisites
	ctx                        context.Context
	visit                      *Visit
	originDeclaresSitemap      map[decorum.Origin]bool // whether an origin's robots.txt declares it
	flaws                      []sitemap.EntryError    // the first maxFlaws flaws
	omittedFlawCount           int                     // number of further flaws
	refusedCrossSubmitCount    int                     // pages that it may not list
	firstRefusedCrossSubmitURL decorum.URL             // the first of these pages
}

// triedSitemapXMLNote names the note in the frontier's store that identifies the robots.txt of an origin
// whose /sitemap.xml was tried because that file names no sitemap.
const triedSitemapXMLNote = "sitemap.xml"

// trySitemapXMLOnce queues /sitemap.xml of the origin of page if the robots.txt of the origin allows it
// and names no sitemap. page is a URL of the crawl that is about to be visited. Many sites have a sitemap
// at that place without a word about it in robots.txt.
func (p *prerequisites) trySitemapXMLOnce(ctx context.Context, page decorum.URL, file gate.FetchSummary) error {
	o := page.Origin()
	if !p.settings.TrySitemapXML || p.settings.NoSitemaps || !o.IsHTTP() {
		return nil
	}
	id := cmp.Or(file.SHA256, file.Outcome.String()) + ", " + p.gate.Dialect().String()
	asListed := storage.Entry{URL: page, Source: storage.SourceSitemap, Depth: 1}
	if p.triedSitemapXML.isApplied(o, id) || p.frontier.CheckScope(asListed) != nil {
		return nil
	}
	return p.applyOnce(ctx, &p.triedSitemapXML, triedSitemapXMLNote, o, id, func(string) error {
		named, err := p.gate.Sitemaps(ctx, o)
		if err != nil || len(named) > 0 {
			return err
		}
		u, err := o.RobotsURL().Resolve("/sitemap.xml")
		if err != nil {
			return err
		}
		evaluate, err := NewVerdictFunc(ctx, p.gate, p.frontier.Store(), o)
		if err != nil || evaluate == nil || !evaluate(u).Allowed {
			return err
		}
		return p.queueSitemaps(ctx, o, []storage.Entry{{URL: u, Source: storage.SourcePrerequisite,
			PriorityClass: storage.ClassEarly, Referrer: o.RobotsURL().String(), CallbackData: []byte(o.String())}})
	})
}

// isTriedSitemapXML reports whether v is to the URL that trySitemapXMLOnce queued, or to the target of its
// redirect: no robots.txt names it, so its CallbackData is an origin without a URL.
func isTriedSitemapXML(v *Visit) bool {
	return v.Lease.Depth == 0 && !bytes.ContainsRune(v.Lease.CallbackData, ' ')
}

// mayBeSitemap reports whether u looks like the URL of a sitemap. A site without one may redirect
// /sitemap.xml to its home page.
func mayBeSitemap(u decorum.URL) bool {
	path, _, _ := strings.Cut(strings.ToLower(u.PathAndQuery()), "?")
	return strings.Contains(path, "sitemap") || strings.HasSuffix(path, ".xml") || strings.HasSuffix(path, ".xml.gz")
}

// encodeSitemapDeclaration returns the CallbackData of a queued sitemap, and of the sitemaps that
// it leads to: the origin whose robots.txt declares it, and its URL there. If that is too long, it
// is the origin alone.
func encodeSitemapDeclaration(declaringOrigin decorum.Origin, declaredURL decorum.URL) []byte {
	w := declaringOrigin.String() + " " + declaredURL.String()
	if len(w) > storage.MaxCallbackDataBytes {
		w = declaringOrigin.String()
	}
	return []byte(w)
}

// seedSitemapMark ends the CallbackData of the sitemaps that a seed leads to.
const seedSitemapMark = " seed"

// sitemapCallbackData returns the CallbackData of the sitemaps that the sitemap of v lists: an index that
// is declared, or a seed, stands for them.
func sitemapCallbackData(v *Visit) []byte {
	if isSeed(v.Lease) {
		return []byte(v.URL().Origin().String() + seedSitemapMark)
	}
	return v.Lease.CallbackData
}

// isFromSeed reports whether v is to a sitemap that is a seed, or that one led to.
func isFromSeed(v *Visit) bool {
	return isSeed(v.Lease) || bytes.HasSuffix(v.Lease.CallbackData, []byte(seedSitemapMark))
}

// decodeSitemapProvenance returns which origin's robots.txt led to the sitemap of v, and the URL
// declared there: that of the sitemap itself, or of the index or redirect that led to it. A seed stands
// for its own origin.
func decodeSitemapProvenance(v *Visit) (declaringOrigin decorum.Origin, declaredURL decorum.URL) {
	origin, sitemap, _ := strings.Cut(string(sitemapCallbackData(v)), " ")
	declaringOrigin, _ = parseOrigin(origin)
	declaredURL, err := decorum.ParseURL(sitemap)
	if err != nil { // the CallbackData has the origin alone
		declaredURL = v.URL()
	}
	return declaringOrigin, declaredURL
}

// mayListOrigin reports whether the sitemap may list URLs of o outside its own location
// (sitemaps.org). It may if it is a seed, which an operator trusts, or if the robots.txt of o's host
// declares the sitemap, or an index that led to it; the declaration holds for every scheme and port of
// the host. It also may while the rules of o are unknown: scope and robots.txt are checked for each URL
// anyway, and the sitemap is not read again later.
func (r *sitemapReader) mayListOrigin(o decorum.Origin) bool {
	declaringOrigin, declaredURL := decodeSitemapProvenance(r.visit)
	if declaringOrigin.Host() == o.Host() || isFromSeed(r.visit) {
		return true
	}
	declares, known := r.originDeclaresSitemap[o]
	if !known {
		robotsGate := r.prerequisites.gate
		rules, err := robotsGate.Rules(r.ctx, o)
		declares = err != nil || rules == nil
		if !declares {
			sitemaps, err := robotsGate.Sitemaps(r.ctx, o)
			declares = err != nil || slices.Contains(sitemaps, declaredURL)
		}
		r.originDeclaresSitemap[o] = declares
	}
	return declares
}

// maxFlaws is how many flaws of a sitemap are logged one by one.
const maxFlaws = 5

// addFlaw keeps the first flaws, and counts the rest.
func (r *sitemapReader) addFlaw(f sitemap.EntryError) {
	if len(r.flaws) < maxFlaws {
		r.flaws = append(r.flaws, f)
	} else {
		r.omittedFlawCount++
	}
}

// logFlaws logs which entries of the sitemap were not used.
func (r *sitemapReader) logFlaws() {
	for _, f := range r.flaws {
		r.prerequisites.log.Info("sitemap has an entry that is not used", "url", r.visit.URL(), "why", f)
	}
	if r.omittedFlawCount > 0 {
		r.prerequisites.log.Info("sitemap has more entries that are not used", "url", r.visit.URL(),
			"count", r.omittedFlawCount)
	}
	if r.refusedCrossSubmitCount > 0 {
		r.prerequisites.log.Info("sitemap lists pages of sites that do not name it in robots.txt; they are not queued",
			"url", r.visit.URL(), "count", r.refusedCrossSubmitCount, "first", r.firstRefusedCrossSubmitURL)
	}
}

// eachBatch calls handle for the entries of the sitemap, in batches. failed is the error of handle,
// damage what is wrong with the sitemap.
func (r *sitemapReader) eachBatch(handle func([]sitemap.Entry) error) (failed, damage error) {
	listed := make([]sitemap.Entry, 0, sitemapBatchSize)
	flush := func() error {
		failed = handle(listed)
		listed = listed[:0]
		return failed
	}
	r.flaws, r.omittedFlawCount, r.refusedCrossSubmitCount = nil, 0, 0
	options := sitemap.Options{MaxBytes: r.prerequisites.settings.MaxSitemapBody, OnEntryError: r.addFlaw}
	damage = sitemap.Read(r.visit.OpenBody(), r.visit.URL(), options, func(e sitemap.Entry) error {
		// The location rule of sitemaps.org is for pages. An index may list sitemaps anywhere: the
		// origin that declares the index wants them read.
		if !e.AllowedByLocation && !e.IsSitemap && !r.mayListOrigin(e.URL.Origin()) {
			if r.refusedCrossSubmitCount++; r.refusedCrossSubmitCount == 1 {
				r.firstRefusedCrossSubmitURL = e.URL
			}
			return nil
		}
		if listed = append(listed, e); len(listed) == sitemapBatchSize {
			return flush()
		}
		return nil
	})
	if failed == nil && len(listed) > 0 {
		flush()
	}
	return failed, damage
}

// isSeed reports whether l is the lease of a seed, or of the target of its redirect.
func isSeed(l storage.Lease) bool { return !l.SeedOrigin.IsZero() && l.Request == nil }

// mayReadSeedSitemap reports whether an answer of this content type to the visit of l is read as a sitemap
// if its content is one: an operator may name a sitemap as a seed. A Handler reads its seeds itself.
func (p *pageHandler) mayReadSeedSitemap(l storage.Lease, contentType string) bool {
	return isSeed(l) && p.handler == nil && !p.settings.NoSitemaps && !extract.IsFeedContentType(contentType)
}

// isSitemapType reports whether servers give sitemaps this content type: that of XML, text or gzip, or of
// any file.
func isSitemapType(contentType string) bool {
	media, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	return slices.Contains([]string{"application/xml", "text/xml", "text/plain", "application/gzip",
		"application/x-gzip", "application/octet-stream"}, strings.TrimSpace(media))
}

// processSeedSitemap reads the sitemap that v found at a seed. It does nothing if v found none.
func (p *pageHandler) processSeedSitemap(ctx context.Context, v *Visit) error {
	if !v.OK() || v.Err != nil || !p.mayReadSeedSitemap(v.Lease, v.Response.Header.Get("Content-Type")) ||
		v.PageScanResult() != nil && !bytes.HasPrefix(bytes.TrimSpace(v.Response.Body), []byte("<")) ||
		!sitemap.Detect(v.OpenBody()) {
		return nil
	}
	v.isSeedSitemap = true
	return p.prerequisites.processFetchedSitemap(ctx, v)
}

// queueSitemapEntries queues the pages and sitemaps that a sitemap lists.
func (p *prerequisites) queueSitemapEntries(ctx context.Context, v *Visit, listed []sitemap.Entry) error {
	pages, sitemaps := make([]storage.Entry, 0, len(listed)), []storage.Entry(nil)
	for _, s := range listed {
		e := storage.Entry{URL: s.URL, Source: storage.SourceSitemap, PriorityRank: frontier.PriorityRank(s.Priority),
			Depth: 1, Referrer: v.URL().String()}
		if s.IsSitemap {
			e.Source, e.PriorityClass, e.PriorityRank, e.Depth =
				storage.SourcePrerequisite, storage.ClassEarly, 0, v.Lease.Depth+1
			e.CallbackData = sitemapCallbackData(v)
			if e.Depth > maxSitemapNesting {
				p.log.Warn("sitemap is not read: indexes are nested too deeply", "url", s.URL, "index", v.URL(),
					"limit", maxSitemapNesting)
				continue
			}
		}
		switch {
		case s.URL == s.URL.Origin().RobotsURL(): // the gate fetches robots.txt itself, when it is due
		case s.IsSitemap:
			sitemaps = append(sitemaps, e)
		default:
			pages = append(pages, e)
		}
	}
	if _, err := p.frontier.Discover(ctx, pages...); err != nil {
		return err
	}
	declaringOrigin, _ := decodeSitemapProvenance(v)
	return p.queueSitemaps(ctx, declaringOrigin, sitemaps)
}

// queueSitemaps queues sitemaps that the robots.txt of declaringOrigin leads to, directly or
// through indexes, up to Settings.MaxSitemapsPerHost for each host. The limit is per host, so
// endless sitemaps of one host neither starve other hosts nor fill the queue. Scope bounds pages;
// this limit bounds sitemaps.
func (p *prerequisites) queueSitemaps(ctx context.Context, declaringOrigin decorum.Origin,
	sitemaps []storage.Entry) error {
	host := declaringOrigin.Host()
	for len(sitemaps) > 0 {
		remaining, warned := p.hostSitemapQuotas.remainingAndMarkWarned(host, p.settings.MaxSitemapsPerHost)
		if remaining == 0 {
			if !warned {
				p.log.Warn("the robots.txt of a host leads to more sitemaps than are read; the rest are ignored",
					"host", host, "limit", p.settings.MaxSitemapsPerHost, "first", sitemaps[0].URL)
			}
			return nil
		}
		offered := sitemaps[:min(remaining, len(sitemaps))]
		added, err := p.frontier.Discover(ctx, offered...)
		p.hostSitemapQuotas.addQueued(host, added)
		if err != nil {
			return err
		}
		sitemaps = sitemaps[len(offered):]
	}
	return nil
}

// hostSitemapQuotas counts the sitemaps queued in this run, by the host whose robots.txt led to
// them. The count of a host that the cache drops, because many others came after it, starts from
// zero again.
type hostSitemapQuotas struct {
	mu    sync.Mutex // guards hosts and the quotas in it
	hosts recent.Map[string, *hostSitemapQuota]
}

type hostSitemapQuota struct {
	queuedSitemaps int
	limitLogged    bool // the log has the warning that the quota is used up
}

// remainingAndMarkWarned returns how many of maxSitemaps host has left. If none are left, it also
// returns whether that was logged before, and marks it as logged.
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

// addQueued counts n more sitemaps of host.
func (q *hostSitemapQuotas) addQueued(host string, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.getOrCreate(host).queuedSitemaps += n
}

// getOrCreate returns the quota of host. The caller holds q.mu.
func (q *hostSitemapQuotas) getOrCreate(host string) *hostSitemapQuota {
	h, ok := q.hosts.Get(host, maxCached)
	if !ok {
		h = &hostSitemapQuota{}
		q.hosts.Put(host, h, maxCached)
	}
	return h
}
