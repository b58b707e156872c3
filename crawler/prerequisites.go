package crawler

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/recent"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// prerequisites are the files that come before pages: robots.txt, where it redirects to,
// tdmrep.json, and the sitemaps that robots.txt names. It takes their answers, and acts on what
// they say.
type prerequisites struct {
	prerequisitesConfig
	tdmrepCache         tdmrepCache
	appliedRobots       robotsFollowUpsDone
	hostSitemapQuotas   hostSitemapQuotas
	lastmodAccuracyLock lastmodAccuracyLock
	sitemapDamageLogged atomic.Bool // a damaged sitemap has been logged in this run
}

type prerequisitesConfig struct {
	gate            *gate.Gate
	frontier        *frontier.Frontier
	settings        Settings
	hosts           *hostTable
	cleaner         urlCleaner
	outcomes        outcomePlanner
	counters        *counters
	onRobotsFetched func(gate.RecordFetchResult) // nil: nobody looks on
	log             *slog.Logger
	now             func() time.Time
}

// beginRun begins a run with a configuration. What is known of origins stays.
func (p *prerequisites) beginRun(cfg prerequisitesConfig) {
	p.prerequisitesConfig = cfg
	p.hostSitemapQuotas = hostSitemapQuotas{}
	p.sitemapDamageLogged.Store(false)
}

// maxCached is of how many origins or hosts a crawl keeps something in memory at least, and of twice as
// many at most; what it forgets it reads again.
const maxCached = 10_000

// appliedRobotsNote is the note, in the frontier's store, that says which robots.txt
// of an origin has been acted upon.
const appliedRobotsNote = "heeded"

// robotsFollowUpsDone are the robots.txt files whose sitemaps are queued, and by which parked
// URLs have been judged again.
type robotsFollowUpsDone struct {
	mu      sync.Mutex // guards fileIDs
	fileIDs recent.Map[decorum.Origin, string]
}

func (h *robotsFollowUpsDone) isApplied(o decorum.Origin, file string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	applied, _ := h.fileIDs.Peek(o) // what is in use is read from the notes again, too, in the end
	return applied == file
}

func (h *robotsFollowUpsDone) setApplied(o decorum.Origin, file string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fileIDs.Put(o, file, maxCached)
}

// queueSitemapsAndUnparkOnce acts on an origin's robots.txt when a URL is judged by it for the first
// time: its sitemaps are queued, and parked URLs that it allows are revived.
// That this was done is noted in the same store, after it: a crash in between
// repeats it. So it does not matter which crawl learnt the file, or when.
func (p *prerequisites) queueSitemapsAndUnparkOnce(ctx context.Context, o decorum.Origin, file gate.FetchSummary) error {
	id := cmp.Or(file.SHA256, file.Outcome.String())
	id += ", " + p.gate.Dialect().String() // another may read other sitemaps in it
	if p.settings.NoSitemaps {
		id += ", no sitemaps" // a later run may want them
	}
	if p.appliedRobots.isApplied(o, id) {
		return nil
	}
	note, err := p.frontier.Store().ReadNote(ctx, o, appliedRobotsNote)
	if err != nil {
		return err
	}
	if string(note) != id {
		if err := p.queueSitemapsAndUnpark(ctx, o); err != nil {
			return err
		}
		if err := p.frontier.Store().SetNote(ctx, o, appliedRobotsNote, []byte(id)); err != nil {
			return err
		}
	}
	p.appliedRobots.setApplied(o, id)
	return nil
}

// applyRobotsAfterDisallow heeds a robots.txt that has just refused a URL, which is now parked. If
// the crawl goes on for long, the origin is watched from then on.
func (p *prerequisites) applyRobotsAfterDisallow(ctx context.Context, o decorum.Origin, file gate.FetchSummary) error {
	if err := p.queueSitemapsAndUnparkOnce(ctx, o, file); err != nil || !p.settings.Revisit.IsEnabled() {
		return err
	}
	_, err := p.frontier.Discover(ctx, storage.Entry{URL: o.RobotsURL(), Source: storage.SourcePrerequisite,
		PriorityClass: storage.ClassLate, Referrer: o.RobotsURL().String()}) // a RobotsRefresh
	return err
}

// queueSitemapsAndUnpark queues the sitemaps that the origin's robots.txt names, whatever their
// host (SMAP-04): each is checked against the rules of its own origin
// (SMAP-07). And it revives the parked URLs that the rules allow.
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

// unparkAllowed queues the parked URLs of an origin again that its robots.txt and its
// tdmrep.json allow, as they are known now.
func (p *prerequisites) unparkAllowed(ctx context.Context, o decorum.Origin) error {
	evaluate, err := NewVerdictFunc(ctx, p.gate, p.frontier.Store(), o)
	if err != nil || evaluate == nil || o.IsZero() { // the zero Origin would stand for all
		return err
	}
	return p.frontier.UnparkMatchingURLs(ctx, o, func(e storage.Entry) bool { return evaluate(p.cleaner.cleanURLToVisit(e)).Allowed })
}

// handleRobots tells the gate what came back for a robots.txt, and the
// frontier what follows from it. The URL whose turn it was goes back and waits
// the delay just learned.
func (p *prerequisites) handleRobots(ctx context.Context, v *Visit) (leaseOutcome, error) {
	result := leaseOutcome{outcome: storage.Requeue}
	if !v.Lease.RobotsFor.IsZero() {
		result.outcome = storage.Done // a redirect is queued by itself
	}
	if v.interrupted {
		p.gate.CancelFetch(v.Clearance) // no news of the server: the next one may ask
		return leaseOutcome{outcome: storage.Requeue}, nil
	}
	if v.wasNeverSent() && v.Lease.RobotsFor.IsZero() {
		p.gate.CancelFetch(v.Clearance) // no request left: the refusal was ours
		p.log.Warn("not visited", "origin", v.URL().Origin(), "error", v.Err)
		return result, p.frontier.Hold(ctx, v.URL().Origin(), v.End.Add(suspendDuration), true)
	}
	ctx = commitContext(ctx) // what came back is learnt, even when the crawl is being halted
	fetched, err := p.gate.RecordFetch(ctx, v.End, v.Clearance, v.Response, v.Err)
	if err != nil {
		p.gate.CancelFetch(v.Clearance) // else the origin would wait for an answer that is lost
		return result, err
	}
	if p.onRobotsFetched != nil {
		p.onRobotsFetched(fetched)
	}
	if err := recordIfHTTPSUnreachable(ctx, p.frontier, v); err != nil {
		return result, err
	}
	// After a redirect to another host, the origins of this one must know of its pause.
	if _, _, err := p.hosts.crawlDelays.hostDelayAndNextAllowedTime(ctx, fetched.Origin, v.End); err != nil {
		return result, err
	}
	return result, p.followRobotsRedirectOrSetHold(ctx, v.URL(), fetched, v.Err)
}

// followRobotsRedirectOrSetHold acts on what was learnt of an origin's robots.txt by asking for from;
// fetchErr is why no answer came, if none did.
func (p *prerequisites) followRobotsRedirectOrSetHold(ctx context.Context, from decorum.URL, result gate.RecordFetchResult, fetchErr error) error {
	switch {
	case !result.RedirectURL.IsZero():
		// The target is paced on its own host like any visit, and the origin's pages wait for
		// it. The hold comes first: the visit to the target ends it. It is short, for a crash may
		// leave the hold without the target: see queueRobotsRedirect.
		until := p.now().Add(recheckDelay)
		if err := p.frontier.Hold(ctx, result.Origin, until, result.PostponedErr.Suspended); err != nil {
			return err
		}
		return p.queueRobotsRedirect(ctx, from, result.Origin, result.PostponedErr)
	case !result.HasRulesInForce:
		if n := result.PostponedErr.ConsecutiveFailures; n&(n-1) == 0 { // the first time, and ever more seldom
			p.log.Warn("origin closed: its robots.txt cannot be had", "origin", result.Origin,
				"why", result.PostponedErr.Reason, "attempts", n, "again_at", result.PostponedErr.Until)
		}
		return p.frontier.Hold(ctx, result.Origin, result.PostponedErr.Until, result.PostponedErr.Suspended || isHostNotFound(fetchErr))
	}
	return p.frontier.Hold(ctx, result.Origin, time.Time{}, false)
}

// robotsRedirectNote is the note, in the frontier's store, that says which redirect of an
// origin's robots.txt has been queued.
const robotsRedirectNote = "hop"

// queueRobotsRedirect queues the redirect that an origin waits for, unless that was done.
// The gate's notes are a store of their own: after a crash it may wait for what
// the frontier has lost.
func (p *prerequisites) queueRobotsRedirect(ctx context.Context, from decorum.URL, o decorum.Origin, postponed *gate.OriginPostponedError) error {
	id := []byte(postponed.RedirectPendingSince.UTC().Format(time.RFC3339Nano) + " " + postponed.RedirectURL.String())
	if done, err := p.frontier.Store().ReadNote(ctx, o, robotsRedirectNote); err != nil || bytes.Equal(done, id) {
		return err
	}
	entry := storage.Entry{URL: postponed.RedirectURL, Source: storage.SourcePrerequisite, PriorityClass: storage.ClassFirst, RobotsFor: o, Referrer: from.String()}
	if _, err := p.frontier.Discover(ctx, entry); err != nil {
		return err
	}
	return p.frontier.Store().SetNote(ctx, o, robotsRedirectNote, id)
}
