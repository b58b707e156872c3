package crawler

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/recent"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// A CachedTDMRep is what is known of an origin's tdmrep.json. A crawl that mines text and data must
// read that file before pages (TDM Reservation Protocol, Processing priority).
type CachedTDMRep struct {
	Body                []byte        `json:"body,omitempty"`     // the file in the last successful answer
	FetchedAt           time.Time     `json:"fetched,omitzero"`   // when the server last answered
	RefetchAt           time.Time     `json:"until,omitzero"`     // earliest time of the next request
	ConsecutiveFailures int           `json:"failures,omitempty"` // consecutive failed lookups
	parsed              *aiuse.TDMRep // Body, parsed; nil without a file

	// firstUseGraceUntil extends the freshness of a newly fetched file, as the gate does for a
	// robots.txt: the file stays fresh until it has decided about a page, but not beyond this time. Zero once it has.
	firstUseGraceUntil time.Time
}

// maxGrace is the longest that a file stays fresh while no page uses it.
const maxGrace = 24 * time.Hour

// isFresh reports whether the file need not be fetched at now.
func (r *CachedTDMRep) isFresh(now time.Time) bool {
	return now.Before(r.RefetchAt) || now.Before(r.firstUseGraceUntil)
}

// tdmrepNote names the note in the frontier's store that has a CachedTDMRep, as JSON.
const tdmrepNote = "tdmrep"

// ReadCachedTDMRep returns what the notes know of an origin's tdmrep.json. A damaged note counts as
// none, so that the file is fetched again.
func ReadCachedTDMRep(ctx context.Context, notes storage.Notes, o decorum.Origin) (*CachedTDMRep, error) {
	note, err := notes.ReadNote(ctx, o, tdmrepNote)
	r := &CachedTDMRep{}
	if err != nil || len(note) == 0 || json.Unmarshal(note, r) != nil {
		return &CachedTDMRep{}, err
	}
	r.parsed, _ = aiuse.ParseTDMRep(r.Body) // its faults were logged when it was fetched
	return r, nil
}

// maxTDMRepFailures is how many consecutive lookups must fail before pages no longer wait for the
// file: from then on the last known file applies, or none.
const maxTDMRepFailures = 3

// tdmrepRetryDelay is the wait after the first failed lookup. It doubles with each further failure.
const tdmrepRetryDelay = time.Minute

// pagesAwaitRetry reports whether pages wait for the file, because its last lookups failed and
// another follows.
func (r *CachedTDMRep) pagesAwaitRetry() bool {
	return r.ConsecutiveFailures > 0 && r.ConsecutiveFailures < maxTDMRepFailures
}

// NewVerdictFunc returns a function that evaluates an origin's URLs by its robots.txt and by the
// tdmrep.json in the notes, as a crawl does while both are valid. The function is nil if no rules
// are known.
func NewVerdictFunc(ctx context.Context, robotsGate *gate.Gate, notes storage.Notes,
	o decorum.Origin) (func(decorum.URL) robots.Verdict, error) {
	rules, err := robotsGate.VerdictFunc(ctx, o)
	if err != nil || rules == nil || !aiuse.PurposesIncludeTDM(robotsGate.Purposes()) {
		return rules, err
	}
	r, err := ReadCachedTDMRep(ctx, notes, o)
	return func(u decorum.URL) robots.Verdict {
		v := rules(u)
		tdmrepVerdict := r.parsed.Check(u, robotsGate.Purposes())
		if v.Allowed && !tdmrepVerdict.Allowed && u != u.Origin().RobotsURL() {
			return tdmrepVerdict
		}
		return v
	}, err
}

// UsageSignalsForURL returns what the file says about the use of u; nothing for a nil r.
func (r *CachedTDMRep) UsageSignalsForURL(u decorum.URL) aiuse.Signals {
	if r == nil {
		return nil
	}
	return r.parsed.SignalsForURL(u)
}

// sha256Hex returns the SHA-256 of the file in hex; empty without a file.
func (r *CachedTDMRep) sha256Hex() string {
	if len(r.Body) == 0 {
		return ""
	}
	sum := sha256.Sum256(r.Body)
	return hex.EncodeToString(sum[:])
}

// A tdmrepCache has the tdmrep.json of the origins in use, and which leases look one up.
type tdmrepCache struct {
	mu                sync.Mutex // guards states and lookupLeaseTokens
	states            recent.Map[decorum.Origin, *CachedTDMRep]
	lookupLeaseTokens map[decorum.Origin]uint64 // token of the lease that fetches the file
}

// tdmrepCacheSize is how many files are kept in memory at least; at most twice as many. A file has
// up to 64 KiB. The size exceeds the number of origins in use at a time.
const tdmrepCacheSize = 250

// get returns the cached file of o, nil if it is not cached.
func (rs *tdmrepCache) get(o decorum.Origin) *CachedTDMRep {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r, _ := rs.states.Peek(o)
	return r
}

func (rs *tdmrepCache) put(o decorum.Origin, r *CachedTDMRep) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.states.Put(o, r, tdmrepCacheSize)
}

// claimLookup reports whether l may fetch the file of its origin: no other lease is fetching it.
func (rs *tdmrepCache) claimLookup(l storage.Lease) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.lookupLeaseTokens == nil {
		rs.lookupLeaseTokens = map[decorum.Origin]uint64{}
	}
	by, claimed := rs.lookupLeaseTokens[urlToVisit(l.Entry).Origin()]
	if !claimed {
		rs.lookupLeaseTokens[urlToVisit(l.Entry).Origin()] = l.Token
	}
	return !claimed || by == l.Token
}

// releaseLookup ends the lookup of l, if it has one.
func (rs *tdmrepCache) releaseLookup(l storage.Lease) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if by, claimed := rs.lookupLeaseTokens[urlToVisit(l.Entry).Origin()]; claimed && by == l.Token {
		delete(rs.lookupLeaseTokens, urlToVisit(l.Entry).Origin())
	}
}

// cachedTDMRep returns the file of o, from the cache or the notes.
func (p *prerequisites) cachedTDMRep(ctx context.Context, o decorum.Origin) (*CachedTDMRep, error) {
	if r := p.tdmrepCache.get(o); r != nil {
		return r, nil
	}
	return p.loadCachedTDMRep(ctx, o)
}

// loadCachedTDMRep returns the file of o from the notes, and caches it: another process may have
// fetched it since it was cached.
func (p *prerequisites) loadCachedTDMRep(ctx context.Context, o decorum.Origin) (*CachedTDMRep, error) {
	r, err := ReadCachedTDMRep(ctx, p.frontier.Store(), o)
	if err == nil {
		p.tdmrepCache.put(o, r)
	}
	return r, err
}

// tdmrepClearance decides by the origin's tdmrep.json whether a page that robots.txt has cleared
// may be visited, if the crawl mines text and data. It returns cl, or a clearance for the file
// itself if that must be fetched first.
func (p *prerequisites) tdmrepClearance(ctx context.Context, l storage.Lease,
	cl gate.Clearance) (gate.Clearance, decorum.Decision, error) {
	o, now := cl.URL().Origin(), p.now()
	kind := visitKindOf(l, cl)
	if !kind.IsPage() && kind != RobotsRefresh || !o.IsHTTP() || !aiuse.PurposesIncludeTDM(p.gate.Purposes()) {
		return cl, decorum.Decision{}, nil
	}
	r, err := p.cachedTDMRep(ctx, o)
	if err != nil {
		return gate.Clearance{}, decorum.Decision{}, err
	}
	// Fetch the file first, unless robots.txt disallows it or another worker or process has it.
	if !r.isFresh(now) {
		file, err := cl.ClearOtherURL(aiuse.TDMRepURL(o))
		if err == nil {
			r, err = p.loadCachedTDMRep(ctx, o)
		}
		switch {
		case errors.Is(err, decorum.Disallowed): // a disallowed file reserves nothing
		case err != nil:
			return gate.Clearance{}, decorum.Decision{}, err
		case r.isFresh(now): // another process has fetched it
		case p.tdmrepCache.claimLookup(l):
			return file, decorum.Decision{}, nil
		default:
			return gate.Clearance{}, tdmrepPostponedDecision(cl.URL(), decorum.Pending, now.Add(recheckDelay)), nil
		}
	}
	d, err := r.decision(now, cl.URL(), p.gate.Purposes(), cl.FetchSummary())
	if d.Reason == decorum.ReasonTDMRep && !kind.IsPage() {
		d = decorum.Decision{} // this visit only keeps the file fresh; it is not to a page
	}
	if err != nil || d.Action != decorum.Proceed {
		return gate.Clearance{}, d, err
	}
	// The file has now been used: its grace ends.
	if !r.firstUseGraceUntil.IsZero() {
		served := *r
		served.firstUseGraceUntil = time.Time{}
		p.tdmrepCache.put(o, &served)
	}
	return cl, decorum.Decision{}, nil
}

// decision returns how r decides about a visit to u at now for these purposes: the page waits for
// the file, or the file reserves u, or the visit may proceed. file is the robots.txt that allows u.
func (r *CachedTDMRep) decision(now time.Time, u decorum.URL, purposes []string,
	file gate.FetchSummary) (decorum.Decision, error) {
	if now.Before(r.RefetchAt) && r.pagesAwaitRetry() {
		return tdmrepPostponedDecision(u, decorum.Unreachable, r.RefetchAt), nil
	}
	v := r.parsed.Check(u, purposes)
	if v.Allowed {
		return decorum.Decision{}, nil
	}
	refusal := &gate.Refusal{Verdict: v, FetchSummary: file, TDMRepSHA256: r.sha256Hex()}
	return RefusalDecision(&decorum.Error{Op: "use", URL: u.String(), Kind: decorum.Disallowed, Err: refusal})
}

// tdmrepPostponedDecision returns the Decision about a page that waits for its origin's
// tdmrep.json, which is Pending or Unreachable.
func tdmrepPostponedDecision(u decorum.URL, kind decorum.ErrorKind, until time.Time) decorum.Decision {
	d := decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonTDMRepUnreachable, Until: until}
	if kind == decorum.Pending {
		d.Reason = decorum.ReasonTDMRepPending
	}
	d.Cause = &decorum.Error{Op: "use", URL: u.String(), Kind: kind, Err: &tdmrepPostponedError{d.Reason, until}}
	return d
}

// A tdmrepPostponedError says that pages wait for the tdmrep.json of their origin.
type tdmrepPostponedError struct {
	reason decorum.DecisionReason
	until  time.Time
}

// Error says why, and until when.
func (e *tdmrepPostponedError) Error() string {
	why := "its tdmrep.json cannot be fetched"
	if e.reason == decorum.ReasonTDMRepPending {
		why = "its tdmrep.json is being fetched"
	}
	return why + "; closed until " + e.until.UTC().Format(time.RFC3339)
}

// handleTDMRepResponse stores the answer for a tdmrep.json. The leased page goes back to its queue
// and waits for the host's rest.
func (p *prerequisites) handleTDMRepResponse(ctx context.Context, v *Visit) (leaseOutcome, error) {
	result := leaseOutcome{outcome: storage.Requeue}
	if v.interrupted {
		return result, nil
	}
	ctx = commitContext(ctx)
	o := v.URL().Origin()
	before, err := p.cachedTDMRep(ctx, o)
	if err != nil {
		return result, err
	}
	// Store the file, then release the origin and the parked URLs that a changed file allows.
	r := p.updatedCachedTDMRep(*before, v)
	note, err := json.Marshal(r)
	if err != nil {
		return result, err
	}
	if err := p.frontier.Store().SetNote(ctx, o, tdmrepNote, note); err != nil {
		return result, err
	}
	p.tdmrepCache.put(o, r)
	if r.pagesAwaitRetry() {
		p.log.Warn("origin held: its tdmrep.json cannot be fetched", "origin", o,
			"attempts", r.ConsecutiveFailures, "again_at", r.RefetchAt)
		return result, p.frontier.Hold(ctx, o, r.RefetchAt, isHostNotFound(v.Err))
	}
	if !bytes.Equal(r.Body, before.Body) {
		err = p.unparkAllowed(ctx, o)
	}
	return result, errors.Join(err, p.frontier.Hold(ctx, o, time.Time{}, false))
}

// updatedCachedTDMRep returns r updated by v. An answer without a file means that the origin has none.
// After a failure the lookup is repeated; after maxTDMRepFailures the last known file stays in
// force, or none.
func (p *prerequisites) updatedCachedTDMRep(r CachedTDMRep, v *Visit) *CachedTDMRep {
	// After a failure, keep the last known file and try again.
	if _, failed := visitFailureClass(v); failed {
		r.ConsecutiveFailures++
		r.RefetchAt = v.End.Add(tdmrepRetryDelay << min(r.ConsecutiveFailures-1, maxTDMRepFailures))
		if r.ConsecutiveFailures >= maxTDMRepFailures {
			r.ConsecutiveFailures, r.RefetchAt, r.firstUseGraceUntil =
				maxTDMRepFailures, v.End.Add(p.settings.TDMRepTTL), v.End.Add(maxGrace)
		}
		return &r
	}
	r = CachedTDMRep{FetchedAt: v.End, RefetchAt: v.End.Add(p.settings.TDMRepTTL),
		firstUseGraceUntil: v.End.Add(maxGrace)}
	if !v.OK() {
		return &r
	}
	r.Body = v.Response.Body
	var damage error
	if r.parsed, damage = aiuse.ParseTDMRep(r.Body); damage != nil {
		p.log.Info("tdmrep.json is damaged; its readable part is used", "url", v.URL(), "error", damage)
	}
	return &r
}
