package crawler

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/recent"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// prerequisites handles the files that come before pages: robots.txt and the targets of its
// redirects, tdmrep.json, and the sitemaps that robots.txt names. It processes their answers and
// acts on them.
type prerequisites struct {
	prerequisitesConfig
	tdmrepCache         tdmrepCache
	appliedRobots       robotsFollowUpsDone
	triedSitemapXML     robotsFollowUpsDone
	hostSitemapQuotas   hostSitemapQuotas
	lastmodAccuracyLock lastmodAccuracyLock
	sitemapDamageLogged atomic.Bool // this run has logged a damaged sitemap
}

type prerequisitesConfig struct {
	gate            *gate.Gate
	frontier        *frontier.Frontier
	settings        Settings
	hosts           *hostTable
	cleaner         urlCleaner
	outcomes        outcomePlanner
	counters        *counters
	onRobotsFetched func(gate.RecordFetchResult) // nil: not called
	log             *slog.Logger
	now             func() time.Time
}

// beginRun sets the configuration and resets what counts per run. What is known of origins stays.
func (p *prerequisites) beginRun(cfg prerequisitesConfig) {
	p.prerequisitesConfig = cfg
	p.hostSitemapQuotas = hostSitemapQuotas{}
	p.sitemapDamageLogged.Store(false)
}

// maxCached is how many origins or hosts a cache of the crawl keeps at least; it keeps at most
// twice as many. What it drops is read again.
const maxCached = 10_000

// appliedRobotsNote names the note in the frontier's store that identifies the robots.txt of an
// origin whose consequences were applied.
const appliedRobotsNote = "heeded"

// robotsFollowUpsDone caches, by origin, the robots.txt whose consequences were applied: the values of
// a note.
type robotsFollowUpsDone struct {
	mu      sync.Mutex                         // guards fileIDs
	fileIDs recent.Map[decorum.Origin, string] // as in the note
}

// isApplied reports whether the robots.txt with this identity was applied for o.
func (h *robotsFollowUpsDone) isApplied(o decorum.Origin, file string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	// Peek, unlike Get, lets an entry in use be dropped, so that its note is read again: another
	// process may have changed it.
	applied, _ := h.fileIDs.Peek(o)
	return applied == file
}

func (h *robotsFollowUpsDone) setApplied(o decorum.Origin, file string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fileIDs.Put(o, file, maxCached)
}

// queueSitemapsAndUnparkOnce applies an origin's robots.txt when it first decides about a URL: it
// queues the sitemaps and the parked URLs that the file allows. Afterwards it notes the file's
// identity in the same store; a crash before that repeats the work. So it does not matter which
// crawl or process fetched the file, or when.
func (p *prerequisites) queueSitemapsAndUnparkOnce(ctx context.Context, o decorum.Origin,
	file gate.FetchSummary) error {
	// Identify the file together with what else decides which sitemaps are read.
	id := cmp.Or(file.SHA256, file.Outcome.String())
	id += ", " + p.gate.Dialect().String() // another dialect may find other sitemaps
	if p.settings.NoSitemaps {
		id += ", no sitemaps" // a later run may read sitemaps
	}
	return p.applyOnce(ctx, &p.appliedRobots, appliedRobotsNote, o, id, func(note string) error {
		before, _, _ := strings.Cut(note, ", ")
		if err := p.logURLsClosedByRobots(ctx, o, before, file); err != nil {
			return err
		}
		return p.queueSitemapsAndUnpark(ctx, o)
	})
}

// applyOnce calls apply with the note of o, unless the note says that it was called for the robots.txt with
// this id.
func (p *prerequisites) applyOnce(ctx context.Context, cache *robotsFollowUpsDone, noteKey string,
	o decorum.Origin, id string, apply func(note string) error) error {
	if cache.isApplied(o, id) {
		return nil
	}
	note, err := p.frontier.Store().ReadNote(ctx, o, noteKey)
	if err != nil {
		return err
	}
	if string(note) != id {
		if err := apply(string(note)); err != nil {
			return err
		}
		if err := p.frontier.Store().SetNote(ctx, o, noteKey, []byte(id)); err != nil {
			return err
		}
	}
	cache.setApplied(o, id)
	return nil
}

// logURLsClosedByRobots logs how many URLs of o wait for a visit that the robots.txt before allowed and file
// disallows. before is the beginning of the appliedRobotsNote: a SHA-256 or an outcome; empty: no file was
// applied. It logs nothing if the earlier file is not stored any more.
func (p *prerequisites) logURLsClosedByRobots(ctx context.Context, o decorum.Origin, before string,
	file gate.FetchSummary) error {
	inspector, ok := p.frontier.Store().(storage.Inspector)
	if !ok || before == "" || file.SHA256 == "" || before == file.SHA256 {
		return nil
	}
	// Compile both files.
	verdictNow, err := p.gate.VerdictFunc(ctx, o)
	if err != nil || verdictNow == nil {
		return err
	}
	verdictBefore := func(decorum.URL) robots.Verdict { return robots.Verdict{Allowed: true} }
	if before != gate.OutcomeAllowAll.String() {
		if verdictBefore, err = p.gate.VersionVerdictFunc(ctx, o, before); err != nil || verdictBefore == nil {
			return err
		}
	}
	// Count the URLs that only the new file disallows.
	n := urlCounter{max: maxClosedURLs, matches: func(e storage.Entry) bool {
		u := p.cleaner.cleanURLToVisit(e)
		return e.Source != storage.SourcePrerequisite && !verdictNow(u).Allowed && verdictBefore(u).Allowed
	}}
	queued, err := n.count(ctx, inspector, o, storage.StateQueued)
	revisits, err2 := n.count(ctx, inspector, o, storage.StateAwaitingRevisit)
	if err := errors.Join(err, err2); err != nil || queued+revisits == 0 {
		return err
	}
	example := p.cleaner.cleanURLToVisit(n.example)
	verdict := verdictNow(example)
	p.log.Warn("robots.txt has changed: it disallows URLs that it allowed before, and they wait for it to change again",
		"origin", o, "queued", queued, "revisits", revisits, "of_waiting", n.seen, "example", example,
		"rule", verdict.Rule, "line", verdict.Line)
	return nil
}

// maxClosedURLs bounds how many URLs of an origin logURLsClosedByRobots looks at.
const maxClosedURLs = 100_000

// A urlCounter counts URLs of an origin that match. It looks at max URLs at most.
type urlCounter struct {
	max, seen int
	matches   func(storage.Entry) bool
	example   storage.Entry // the first that matches
}

// count returns how many URLs in a state match. Leased URLs count as queued.
func (n *urlCounter) count(ctx context.Context, store storage.Inspector, o decorum.Origin,
	state storage.EntryState) (total int, err error) {
	err = store.OriginURLsInState(ctx, o, state, func(e storage.Entry, _ time.Time) bool {
		if n.seen++; n.matches(e) {
			total++
			if n.example.URL.IsZero() {
				n.example = e
			}
		}
		return n.seen < n.max
	})
	return total, err
}

// applyRobotsAfterDisallow applies a robots.txt that has just disallowed a URL of o. If the crawl
// revisits pages, it also queues a RobotsRefresh, which keeps watching the file for the parked URL.
func (p *prerequisites) applyRobotsAfterDisallow(ctx context.Context, o decorum.Origin, file gate.FetchSummary) error {
	if err := p.queueSitemapsAndUnparkOnce(ctx, o, file); err != nil || !p.settings.Revisit.IsEnabled() {
		return err
	}
	_, err := p.frontier.Discover(ctx, storage.Entry{URL: o.RobotsURL(), Source: storage.SourcePrerequisite,
		PriorityClass: storage.ClassLate, Referrer: o.RobotsURL().String()}) // a RobotsRefresh
	return err
}

// queueSitemapsAndUnpark queues the sitemaps that the origin's robots.txt names, on any host
// (SMAP-04); each is checked against the rules of its own origin (SMAP-07). It also queues the
// parked URLs that the rules allow.
func (p *prerequisites) queueSitemapsAndUnpark(ctx context.Context, o decorum.Origin) error {
	if !p.settings.NoSitemaps {
		sitemaps, err := p.gate.Sitemaps(ctx, o)
		if err != nil {
			return err
		}
		entries := make([]storage.Entry, len(sitemaps))
		for i, u := range sitemaps {
			entries[i] = storage.Entry{URL: u, Source: storage.SourcePrerequisite, PriorityClass: storage.ClassEarly,
				Referrer: o.RobotsURL().String(), CallbackData: encodeSitemapDeclaration(o, u)}
		}
		if err := p.queueSitemaps(ctx, o, entries); err != nil {
			return err
		}
	}
	return p.unparkAllowed(ctx, o)
}

// unparkAllowed queues the parked URLs of o that its robots.txt and tdmrep.json allow now.
func (p *prerequisites) unparkAllowed(ctx context.Context, o decorum.Origin) error {
	evaluate, err := NewVerdictFunc(ctx, p.gate, p.frontier.Store(), o)
	if err != nil || evaluate == nil || o.IsZero() { // the zero Origin would match all origins
		return err
	}
	return p.frontier.UnparkMatchingURLs(ctx, o, func(e storage.Entry) bool {
		return evaluate(p.cleaner.cleanURLToVisit(e)).Allowed
	})
}

// handleRobots passes the answer for a robots.txt to the gate, and sets or releases the hold of the
// origin accordingly. The leased URL goes back to its queue and waits for the delay just learnt.
func (p *prerequisites) handleRobots(ctx context.Context, v *Visit) (leaseOutcome, error) {
	result := leaseOutcome{outcome: storage.Requeue}
	if !v.Lease.RobotsFor.IsZero() {
		result.outcome = storage.Done // a redirect target has its own entry
	}
	if v.interrupted {
		p.gate.CancelFetch(v.Clearance) // the answer says nothing about the server: the next lease may try
		return leaseOutcome{outcome: storage.Requeue}, nil
	}
	if v.wasNeverSent() && v.Lease.RobotsFor.IsZero() {
		p.gate.CancelFetch(v.Clearance) // this side refused the request
		p.log.Warn("robots.txt was not requested", "origin", v.URL().Origin(), "error", v.Err)
		return result, p.frontier.Hold(ctx, v.URL().Origin(), v.End.Add(suspendDuration), true)
	}
	ctx = commitContext(ctx) // keep the answer even while the crawl is being halted
	fetched, err := p.gate.RecordFetch(ctx, v.End, v.Clearance, v.Response, v.Err)
	if err != nil {
		p.gate.CancelFetch(v.Clearance) // otherwise the origin would wait for a lost answer
		return result, err
	}
	if p.onRobotsFetched != nil {
		p.onRobotsFetched(fetched)
	}
	if err := recordIfHTTPSUnreachable(ctx, p.frontier, v); err != nil {
		return result, err
	}
	// v may have gone to another host, to which the origin's robots.txt redirects. Note the delay of
	// the origin itself, for the other origins of its host.
	if _, _, err := p.hosts.crawlDelays.hostDelayAndNextAllowedTime(ctx, fetched.Origin, v.End); err != nil {
		return result, err
	}
	return result, p.followRobotsRedirectOrSetHold(ctx, v.URL(), v.Lease.Source, fetched, v.Err)
}

// followRobotsRedirectOrSetHold acts on the result of fetching a robots.txt from the URL from.
// source is how the page was found whose visit needs the file. fetchErr is why no answer came, nil if one
// came.
func (p *prerequisites) followRobotsRedirectOrSetHold(ctx context.Context, from decorum.URL,
	source storage.Source, result gate.RecordFetchResult, fetchErr error) error {
	switch {
	case !result.RedirectURL.IsZero():
		// Queue the target. Its own host paces the visit, and the origin's pages wait for it. The
		// hold comes first, because the visit to the target releases it. It is short, because a
		// crash may leave the hold without the target: see queueRobotsRedirect.
		until := p.now().Add(recheckDelay)
		if err := p.frontier.Hold(ctx, result.Origin, until, result.PostponedErr.Suspended); err != nil {
			return err
		}
		return p.queueRobotsRedirect(ctx, from, result.Origin, result.PostponedErr)
	case !result.HasRulesInForce:
		if n := result.PostponedErr.ConsecutiveFailures; n&(n-1) == 0 { // log the 1st, 2nd, 4th, 8th… failure
			p.log.Warn("origin held: its robots.txt cannot be fetched", "origin", result.Origin,
				"why", result.PostponedErr.Reason, "attempts", n, "again_at", result.PostponedErr.Until)
		}
		suspended := result.PostponedErr.Suspended || isHostNotFound(fetchErr)
		if !suspended && fetchErr != nil && mayGiveUpDeadTwin(source) {
			var err error
			if suspended, err = IsDeadTwin(ctx, p.gate, result.Origin); err != nil {
				return err
			}
		}
		return p.frontier.Hold(ctx, result.Origin, result.PostponedErr.Until, suspended)
	}
	return p.frontier.Hold(ctx, result.Origin, time.Time{}, false)
}

// mayGiveUpDeadTwin reports whether a crawl need not wait for a dead twin with a page of this source: a
// link may be wrong, but a seed or a redirect says that the site is there, so its failure may be brief.
func mayGiveUpDeadTwin(source storage.Source) bool {
	return source != storage.SourceSeed && source != storage.SourceRedirect
}

// IsDeadTwin reports whether o has never answered, and its twin on the other of http and https has. The
// host works, so a crawl need not wait for o: many sites on http have a link to a page of theirs on https
// where no server is.
func IsDeadTwin(ctx context.Context, g *gate.Gate, o decorum.Origin) (bool, error) {
	twin, ok := frontier.HTTPSVariant(o.RobotsURL())
	if !ok {
		twin, ok = frontier.HTTPVariant(o.RobotsURL())
	}
	file, err := g.LastFetchSummary(ctx, o)
	if err != nil || !ok || file.Answered {
		return false, err
	}
	file, err = g.LastFetchSummary(ctx, twin.Origin())
	return file.Answered, err
}

// robotsRedirectNote names the note in the frontier's store that identifies the redirect of an
// origin's robots.txt that was queued last.
const robotsRedirectNote = "hop"

// queueRobotsRedirect queues the target of the redirect that an origin waits for, unless that was
// done. The gate keeps its records in another store: after a crash the gate may wait for a target
// that the frontier has lost, so the note is written after the target.
func (p *prerequisites) queueRobotsRedirect(ctx context.Context, from decorum.URL, o decorum.Origin,
	postponed *gate.OriginPostponedError) error {
	id := []byte(postponed.RedirectPendingSince.UTC().Format(time.RFC3339Nano) + " " + postponed.RedirectURL.String())
	if done, err := p.frontier.Store().ReadNote(ctx, o, robotsRedirectNote); err != nil || bytes.Equal(done, id) {
		return err
	}
	entry := storage.Entry{URL: postponed.RedirectURL, Source: storage.SourcePrerequisite,
		PriorityClass: storage.ClassFirst, RobotsFor: o, Referrer: from.String()}
	if _, err := p.frontier.Discover(ctx, entry); err != nil {
		return err
	}
	return p.frontier.Store().SetNote(ctx, o, robotsRedirectNote, id)
}
