package crawler

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math/bits"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/recent"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// A pageHandler passes the answer of a page to the Handler, and its links to the frontier.
type pageHandler struct {
	pageHandlerConfig
	contentSeen contentSeen
	seedTargets seedTargets
	linkBuffers sync.Pool // of *[]LinkToVisit: see takeLinkBuffer
}

type pageHandlerConfig struct {
	handler  Handler  // nil: linksToFollow
	recorder Recorder // nil: pages are not recorded
	frontier *frontier.Frontier
	hosts    *hostTable
	policy   politeness.Policy
	settings Settings
	cleaner  urlCleaner
	content  *contentAnalyzer
	outcomes outcomePlanner
	counters *counters
	log      *slog.Logger

	prerequisites *prerequisites // reads sitemaps that are seeds
}

// handlePage takes the answer of a page through the handler, the recorder and the frontier, and
// returns its outcome.
func (p *pageHandler) handlePage(ctx context.Context, v *Visit) (leaseOutcome, error) {
	if v.interrupted {
		return leaseOutcome{outcome: storage.Requeue}, nil
	}
	// The handler may queue links that belong to the crawl only because of this answer.
	if err := p.recordThatPageExists(commitContext(ctx), v); err != nil {
		return leaseOutcome{outcome: storage.Requeue}, err
	}
	// Call the handler. If it only reports that its context is done, the page is visited again.
	links, verdict := p.callHandlerIfContentUsable(ctx, v)
	if !v.unsafeSendRecorded && isCancellation(ctx, verdict) {
		v.interrupted = true
		return leaseOutcome{outcome: storage.Requeue}, nil
	}
	if verdict == nil {
		if err := p.countDuplicateOrNonCanonical(commitContext(ctx), v); err != nil {
			return leaseOutcome{outcome: storage.Requeue}, err
		}
	}
	v.Err = cmp.Or(v.Err, verdict)
	v.LinkCount, v.Links = len(links), links
	// Record the page before its links are queued and the lease is acked.
	p.countAndLogIfInDoubt(v)
	if p.recorder != nil {
		err := p.recorder.Record(ctx, p.content.visitWithoutWithheldContent(v))
		if err != nil && ctx.Err() != nil {
			return leaseOutcome{outcome: storage.Requeue}, nil // the recorder was waiting for disk space
		}
		if err != nil {
			return leaseOutcome{outcome: storage.Requeue}, fmt.Errorf("cannot record %s: %w", v.URL(), err)
		}
	}
	// Store the links even while the crawl is being halted.
	if err := p.addLinksAndRedirectToFrontier(commitContext(ctx), v, links); err != nil {
		return leaseOutcome{outcome: storage.Requeue}, err
	}
	return p.decideOutcome(commitContext(ctx), v, verdict)
}

// isCancellation reports whether a handler gave up because its context is done: the crawl is being
// halted, or the lease has expired. That says nothing about the page.
func isCancellation(ctx context.Context, verdict error) bool {
	return ctx.Err() != nil && (errors.Is(verdict, ctx.Err()) || errors.Is(verdict, context.Cause(ctx)))
}

// callHandlerIfContentUsable calls the handler and returns a panic as an error. It does not call
// the handler for an unchanged page (304), or for a page whose content must be withheld. Of the
// latter it still returns the links, if the crawl has no Handler of its own.
func (p *pageHandler) callHandlerIfContentUsable(ctx context.Context, v *Visit) (links []LinkToVisit, err error) {
	if v.Response == nil || v.Status() == http.StatusNotModified {
		return nil, nil
	}
	defer func() {
		if r := recover(); r != nil {
			links, err = nil, p.handlePanic(r, v.URL())
		}
	}()
	handle := p.handler
	if handle == nil {
		handle = p.linksToFollow
	}
	if !p.content.forbidsContentUse(v) {
		return handle(ctx, v)
	}
	// Withhold the content: only the crawl's own link extraction may read it.
	v.contentWithheld = true
	p.counters.count(func(s *Stats) { s.PagesWithheld++ })
	if p.handler != nil {
		return nil, nil
	}
	return p.linksToFollow(ctx, v)
}

// handlePanic logs and counts the panic of a callback, and returns it as an error. A panic that was
// passed on from another goroutine carries the stack of that goroutine.
func (p *pageHandler) handlePanic(recovered any, u decorum.URL) error {
	p.counters.count(func(s *Stats) { s.Panics++ })
	stack := debug.Stack()
	if elsewhere, ok := recovered.(interface{ Stack() []byte }); ok {
		stack = elsewhere.Stack()
	}
	p.log.Error("callback panicked", "url", u, "panic", recovered, "stack", string(stack))
	return &decorum.Error{Op: "handle", URL: u.String(), Kind: decorum.Panicked, Err: fmt.Errorf("%v", recovered)}
}

// addLinksAndRedirectToFrontier queues a page's links, what a sitemap lists that is a seed, and the target
// of a redirect.
func (p *pageHandler) addLinksAndRedirectToFrontier(ctx context.Context, v *Visit, links []LinkToVisit) error {
	var entries []storage.Entry
	found := storage.Entry{Referrer: v.URL().String()}
	for _, l := range links {
		if l.Request == nil && p.frontier.WasRecentlyOffered(l.URL) { // as are most links of a site
			continue
		}
		found.URL, found.CallbackData, found.Source, found.Request =
			l.URL, l.CallbackData, l.discoverySource(), l.Request
		if found.Depth = v.Lease.Depth + 1; l.isResource {
			found.Depth = v.Lease.Depth // it is part of its page
		}
		if err := found.Validate(); err != nil {
			p.log.Warn("a handler returned an invalid link", "page", v.URL(), "error", err)
			continue
		}
		if l.URL.PathAndQuery() != "/robots.txt" { // the gate fetches robots.txt itself, when it is due
			entries = append(entries, found)
			if l.isAlsoResource { // offered once more, as its depth may differ
				found.Source, found.Depth = storage.SourceResource, v.Lease.Depth
				entries = append(entries, found)
			}
		}
	}
	if len(entries) > 0 {
		if err := p.discoverLinks(ctx, v, entries); err != nil {
			return err
		}
	}
	if err := p.processSeedSitemap(ctx, v); err != nil {
		return err
	}
	return p.discoverRedirectAndNoteHTTPS(ctx, v)
}

// discoverLinks queues the links of v's page. Those of a page that has the body of another page of its
// host wait behind all other URLs, and end at a budget of the host: relative links of such a page may
// lead to the same page at ever new URLs.
func (p *pageHandler) discoverLinks(ctx context.Context, v *Visit, entries []storage.Entry) error {
	if !v.isDuplicateOnHost {
		_, err := p.frontier.DiscoverReportingRefusals(ctx, nil, entries)
		return err
	}
	budget := p.hosts.duplicateLinkBudget(v.Lease, p.settings.MaxDuplicateLinksPerHost)
	added, err := p.frontier.DiscoverLinksOfDuplicate(ctx, entries, budget)
	p.hosts.countDuplicateLinks(v.Lease, added)
	return err
}

// countDuplicateOrNonCanonical counts v if its page names another canonical URL, or has the body of
// another page. It counts each page on its first visit only, no resource, and no page whose content is
// withheld. It sets v.isDuplicateOnHost.
func (p *pageHandler) countDuplicateOrNonCanonical(ctx context.Context, v *Visit) error {
	if !v.OK() || v.IsRevisit() || v.Lease.Request != nil || v.contentWithheld ||
		v.Lease.Source == storage.SourceResource {
		return nil
	}
	if to := v.CanonicalURL(); !to.IsZero() && to != v.URL() && p.cleaner.cleanURL(to) != v.Lease.URL {
		p.counters.count(func(s *Stats) { s.NonCanonical++ })
	}
	if len(v.Response.Body) == 0 || v.Response.BodyLimitExceeded {
		return nil
	}
	onAnyHost, onThisHost := p.contentSeen.addAndReportDuplicate(p.bodyHash(v), v.host(), v.URL().String())
	if onAnyHost {
		p.counters.count(func(s *Stats) { s.DuplicateBodies++ })
	}
	if isTwin, isAlike := p.contentSeen.compareWithTwin(p.bodyHash(v), v.URL()); isTwin {
		// A twin is no evidence of a trap: pages that wait on either scheme may be new.
		if err := p.frontier.RecordTwins(ctx, v.URL(), isAlike); err != nil || isAlike {
			return err
		}
	}
	v.isDuplicateOnHost = onThisHost
	return p.frontier.RecordPage(ctx, v.URL(), onThisHost)
}

// bodyHash returns the key of v's body in contentSeen. If visits are recorded, it is derived from
// the SHA-256 that the record needs anyway.
func (p *pageHandler) bodyHash(v *Visit) uint64 {
	if p.recorder == nil {
		return p.contentSeen.hash(v.Response.Body)
	}
	sum := v.BodySHA256()
	return binary.LittleEndian.Uint64(sum[:])
}

// contentSeenSize is how many bodies contentSeen remembers at least; it remembers at most twice as
// many, in about 8 MB.
const contentSeenSize = 50_000

// contentSeen remembers which bodies were seen lately, and at which URL first.
type contentSeen struct {
	hashSeedOnce sync.Once
	hashSeed     maphash.Seed

	mu sync.Mutex // guards firstURLHashes and bodiesByURL
	// firstURLHashes maps the hash of a body to the hash of the first URL with that body, and the hash
	// of a host and a body to that of the first URL of the host.
	firstURLHashes recent.Map[uint64, uint64]
	// bodiesByURL maps the hash of a URL without its scheme to the hash of its body; the lowest bit of
	// that says whether the URL was on https.
	bodiesByURL recent.Map[uint64, uint64]
}

// hash returns a hash of text that is valid in this process only.
func (b *contentSeen) hash(text []byte) uint64 {
	b.hashSeedOnce.Do(func() { b.hashSeed = maphash.MakeSeed() })
	return maphash.Bytes(b.hashSeed, text)
}

// addAndReportDuplicate remembers the body with this hash, and reports whether another URL, and whether
// another URL of this host, had it first.
func (b *contentSeen) addAndReportDuplicate(key uint64, host, url string) (onAnyHost, onThisHost bool) {
	hostKey := bits.RotateLeft64(b.hash([]byte(host)), 1) ^ key
	urlHash := b.hash([]byte(url))
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.addLocked(key, urlHash), b.addLocked(hostKey, urlHash)
}

// addLocked remembers key, and reports whether another URL had it first. The caller holds b.mu.
func (b *contentSeen) addLocked(key, urlHash uint64) bool {
	firstURLHash, known := b.firstURLHashes.Peek(key)
	if !known {
		firstURLHash = urlHash
	}
	b.firstURLHashes.Put(key, firstURLHash, 2*contentSeenSize)
	return firstURLHash != urlHash
}

// compareWithTwin remembers the body of u. It reports whether the twin of u, the same URL on https or
// http on their default ports, was visited before, and whether its body was the same.
func (b *contentSeen) compareWithTwin(body uint64, u decorum.URL) (isTwin, isAlike bool) {
	scheme, rest, _ := strings.Cut(u.String(), "://")
	isHTTPS := scheme == "https"
	if o := u.Origin(); !o.IsHTTP() || strings.TrimSuffix(o.HostPort(), ".") != o.Host() {
		return false, false
	}
	key, value := b.hash([]byte(rest)), body&^1
	if isHTTPS {
		value |= 1
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before, isKnown := b.bodiesByURL.Peek(key)
	b.bodiesByURL.Put(key, value, contentSeenSize)
	return isKnown && before&1 != value&1, before|1 == value|1
}

// decideOutcome turns a page's answer and the handler's verdict into an outcome.
func (p *pageHandler) decideOutcome(ctx context.Context, v *Visit, verdict error) (leaseOutcome, error) {
	// A handler's verdict overrides the status.
	var wait decorum.HandlerRetryError
	switch {
	case errors.Is(verdict, decorum.Dropped), errors.Is(verdict, decorum.Panicked):
		return leaseOutcome{outcome: storage.Drop}, nil
	case errors.As(verdict, &wait):
		return p.outcomes.retryOrGiveUp(v, RetryRequested, time.Duration(wait)), nil
	case verdict != nil:
		return p.outcomes.retryOrGiveUp(v, RetryRequested,
			p.policy.RetryDelay(v.URL().String(), v.Lease.FailedAttempts+1)), nil
	}
	// If nothing is at the cleaned URL, try the URL it was cleaned from; if nothing is on https,
	// try http.
	result, failed := p.outcomes.failureResult(v)
	if found, ok := p.uncleanedFallback(v); ok && !failed {
		return leaseOutcome{outcome: storage.Requeue, uncleanedURL: found}, nil
	}
	if isNotFound(v.Status()) || isUnreachable(v) && result.outcome == storage.Drop {
		if err := p.requeueOnHTTP(ctx, v.Lease.Entry); err != nil {
			return leaseOutcome{outcome: storage.Requeue}, err
		}
	}
	if failed {
		return result, nil
	}
	return p.outcomes.doneOrRevisit(ctx, v)
}
