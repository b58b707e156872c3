package crawler

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/recent"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// A pageHandler takes the answer of a page to its handler, and what that returns to the frontier.
type pageHandler struct {
	pageHandlerConfig
	contentSeen contentSeen
}

type pageHandlerConfig struct {
	handler  Handler  // nil: linksToFollow
	recorder Recorder // nil: there is none
	frontier *frontier.Frontier
	policy   politeness.Policy
	settings Settings
	cleaner  urlCleaner
	content  *contentAnalyzer
	outcomes outcomePlanner
	counters *counters
	log      *slog.Logger
}

// handlePage follows a page's answer to its outcome.
func (p *pageHandler) handlePage(ctx context.Context, v *Visit) (leaseOutcome, error) {
	if v.interrupted {
		return leaseOutcome{outcome: storage.Requeue}, nil
	}
	links, verdict := p.callHandlerIfContentUsable(ctx, v)
	if !v.unsafeSendRecorded && isCancellation(ctx, verdict) {
		v.interrupted = true
		return leaseOutcome{outcome: storage.Requeue}, nil
	}
	if verdict == nil {
		p.countDuplicateOrNonCanonical(v)
	}
	v.Err = cmp.Or(v.Err, verdict)
	v.LinkCount = len(links)
	p.countAndLogIfInDoubt(v)
	if p.recorder != nil {
		err := p.recorder.Record(ctx, p.content.visitWithoutWithheldContent(v))
		if err != nil && ctx.Err() != nil {
			return leaseOutcome{outcome: storage.Requeue}, nil // it was waiting for room on the disk
		}
		if err != nil {
			return leaseOutcome{outcome: storage.Requeue}, fmt.Errorf("cannot record %s: %w", v.URL(), err)
		}
	}
	// What was read is kept, even when the crawl is being halted.
	if err := p.addLinksAndRedirectToFrontier(commitContext(ctx), v, links); err != nil {
		return leaseOutcome{outcome: storage.Requeue}, err
	}
	return p.decideOutcome(commitContext(ctx), v, verdict)
}

// isCancellation reports whether a handler gave up because its context was done: the crawl was
// halted, or the lease has run out. That says nothing of the page.
func isCancellation(ctx context.Context, verdict error) bool {
	return ctx.Err() != nil && (errors.Is(verdict, ctx.Err()) || errors.Is(verdict, context.Cause(ctx)))
}

// callHandlerIfContentUsable calls the handler, and catches its panic. Of a page that has not changed
// there is nothing to read. One that is not to be used is read for its links alone,
// where no handler of the user's says what leads on.
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
	v.contentWithheld = true
	p.counters.count(func(s *Stats) { s.PagesWithheld++ })
	if p.handler != nil {
		return nil, nil
	}
	return p.linksToFollow(ctx, v)
}

// handlePanic logs and counts the panic of a callback, and returns it as an error. A
// panic that was handed on from another goroutine knows where it was.
func (p *pageHandler) handlePanic(recovered any, u decorum.URL) error {
	p.counters.count(func(s *Stats) { s.Panics++ })
	stack := debug.Stack()
	if elsewhere, ok := recovered.(interface{ Stack() []byte }); ok {
		stack = elsewhere.Stack()
	}
	p.log.Error("callback panicked", "url", u, "panic", recovered, "stack", string(stack))
	return &decorum.Error{Op: "handle", URL: u.String(), Kind: decorum.Panicked, Err: fmt.Errorf("%v", recovered)}
}

// addLinksAndRedirectToFrontier offers a page's links to the frontier, and its redirect's target.
func (p *pageHandler) addLinksAndRedirectToFrontier(ctx context.Context, v *Visit, links []LinkToVisit) error {
	var entries []storage.Entry
	found := storage.Entry{Depth: v.Lease.Depth + 1, Referrer: v.URL().String()}
	for _, l := range links {
		if l.Request == nil && p.frontier.WasRecentlyOffered(l.URL) { // as most links of a site are
			continue
		}
		found.URL, found.CallbackData, found.Source, found.Request = l.URL, l.CallbackData, l.discoverySource(), l.Request
		if err := found.Validate(); err != nil {
			p.log.Warn("a handler returned a link that cannot be kept", "page", v.URL(), "error", err)
			continue
		}
		if l.URL.PathAndQuery() != "/robots.txt" { // the gate asks for it, and knows when
			entries = append(entries, found)
		}
	}
	if len(entries) > 0 {
		if _, err := p.frontier.DiscoverReportingRefusals(ctx, nil, entries); err != nil {
			return err
		}
	}
	return p.discoverRedirectAndNoteHTTPS(ctx, v)
}

// countDuplicateOrNonCanonical counts v if its page says that it stands for another, or has the
// body of one that was visited before. A page that was visited before itself is
// counted then, and one that is not to be used is not.
func (p *pageHandler) countDuplicateOrNonCanonical(v *Visit) {
	if !v.OK() || v.IsRevisit() || v.Lease.Request != nil || v.contentWithheld {
		return
	}
	if to := v.CanonicalURL(); !to.IsZero() && to != v.URL() && p.cleaner.cleanURL(to) != v.Lease.URL {
		p.counters.count(func(s *Stats) { s.NonCanonical++ })
	}
	if len(v.Response.Body) > 0 && !v.Response.BodyLimitExceeded && p.contentSeen.addAndReportDuplicate(p.bodyHash(v), v.URL().String()) {
		p.counters.count(func(s *Stats) { s.DuplicateBodies++ })
	}
}

// bodyHash returns what the body of v is known by. Where visits are written down, that
// is what is written.
func (p *pageHandler) bodyHash(v *Visit) uint64 {
	if p.recorder == nil {
		return p.contentSeen.hash(v.Response.Body)
	}
	sum := v.BodySHA256()
	return binary.LittleEndian.Uint64(sum[:])
}

// contentSeenSize is how many bodies are remembered at least; twice as many at most, in
// about 4 MB.
const contentSeenSize = 50_000

// contentSeen remembers which pages had which bodies lately.
type contentSeen struct {
	hashSeedOnce sync.Once
	hashSeed     maphash.Seed

	mu             sync.Mutex                 // guards firstURLHashes
	firstURLHashes recent.Map[uint64, uint64] // of the first URL that had a body, by the hash of the body
}

// hash returns a quick hash.
func (b *contentSeen) hash(text []byte) uint64 {
	b.hashSeedOnce.Do(func() { b.hashSeed = maphash.MakeSeed() })
	return maphash.Bytes(b.hashSeed, text)
}

// addAndReportDuplicate reports whether the body with that hash was another URL's before, and
// remembers it.
func (b *contentSeen) addAndReportDuplicate(key uint64, url string) bool {
	urlHash := b.hash([]byte(url))
	b.mu.Lock()
	defer b.mu.Unlock()
	firstURLHash, known := b.firstURLHashes.Peek(key)
	if !known {
		firstURLHash = urlHash
	}
	b.firstURLHashes.Put(key, firstURLHash, contentSeenSize)
	return firstURLHash != urlHash
}

// decideOutcome turns a page's answer and the handler's verdict into an outcome.
func (p *pageHandler) decideOutcome(ctx context.Context, v *Visit, verdict error) (leaseOutcome, error) {
	var wait decorum.HandlerRetryError
	switch {
	case errors.Is(verdict, decorum.Dropped), errors.Is(verdict, decorum.Panicked):
		return leaseOutcome{outcome: storage.Drop}, nil
	case errors.As(verdict, &wait):
		return p.outcomes.retryOrGiveUp(v, RetryRequested, time.Duration(wait)), nil
	case verdict != nil:
		return p.outcomes.retryOrGiveUp(v, RetryRequested, p.policy.RetryDelay(v.URL().String(), v.Lease.FailedAttempts+1)), nil
	}
	result, failed := p.outcomes.failureResult(v)
	if found, ok := p.uncleanedFallback(v); ok && !failed {
		return leaseOutcome{outcome: storage.Requeue, uncleanedURL: found}, nil
	}
	if isNotFound(v.Status()) || isUnreachable(v) && result.outcome == storage.Drop {
		if err := p.requeueOnHTTP(ctx, v); err != nil {
			return leaseOutcome{outcome: storage.Requeue}, err
		}
	}
	if failed {
		return result, nil
	}
	return p.outcomes.doneOrRevisit(ctx, v)
}
