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

// A CachedTDMRep is what is known of an origin's tdmrep.json, which a crawl that
// mines text and data must read before pages (TDM Reservation Protocol, Processing
// priority).
type CachedTDMRep struct {
	Body                []byte    `json:"body,omitempty"`     // of the last answer that was a file
	FetchedAt           time.Time `json:"fetched,omitzero"`   // when the server last answered
	RefetchAt           time.Time `json:"until,omitzero"`     // it is not asked again before
	ConsecutiveFailures int       `json:"failures,omitempty"` // lookups that failed in a row
	parsed              *aiuse.TDMRep

	// firstUseGraceUntil is until when what was just learnt holds at least until a page has been
	// cleared by it, as of a robots.txt; zero if one was.
	firstUseGraceUntil time.Time
}

// maxGrace is how long a file at most holds for which no page comes.
const maxGrace = 24 * time.Hour

// isFresh reports whether the file need not be asked for at now.
func (r *CachedTDMRep) isFresh(now time.Time) bool {
	return now.Before(r.RefetchAt) || now.Before(r.firstUseGraceUntil)
}

// tdmrepNote is the note, in the frontier's store, that keeps one.
const tdmrepNote = "tdmrep"

// ReadCachedTDMRep returns what is known of an origin's tdmrep.json. A note that
// cannot be read is of nothing known: the file is asked for again.
func ReadCachedTDMRep(ctx context.Context, notes storage.Notes, o decorum.Origin) (*CachedTDMRep, error) {
	note, err := notes.ReadNote(ctx, o, tdmrepNote)
	r := &CachedTDMRep{}
	if err != nil || len(note) == 0 || json.Unmarshal(note, r) != nil {
		return &CachedTDMRep{}, err
	}
	r.parsed, _ = aiuse.ParseTDMRep(r.Body) // what is wrong with it was said when it came
	return r, nil
}

// maxTDMRepFailures is how many lookups of a tdmrep.json must fail in a row for the origin
// to count as one that has none.
const maxTDMRepFailures = 3

// tdmrepRetryDelay is how long a server that failed is left alone, then twice as
// long.
const tdmrepRetryDelay = time.Minute

// pagesAwaitRetry reports whether pages wait for the file: the server failed just now.
func (r *CachedTDMRep) pagesAwaitRetry() bool {
	return r.ConsecutiveFailures > 0 && r.ConsecutiveFailures < maxTDMRepFailures
}

// NewVerdictFunc returns how an origin's URLs are judged by its robots.txt, and by what the
// notes keep of its tdmrep.json: as a crawl judges them while these hold. It is nil
// if no rules are known.
func NewVerdictFunc(ctx context.Context, robotsGate *gate.Gate, notes storage.Notes, o decorum.Origin) (func(decorum.URL) robots.Verdict, error) {
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

// UsageSignalsForURL returns what the file says of the use of u; a nil file says nothing.
func (r *CachedTDMRep) UsageSignalsForURL(u decorum.URL) aiuse.Signals {
	if r == nil {
		return nil
	}
	return r.parsed.SignalsForURL(u)
}

// sha256Hex returns the hash of the file in hex, empty if there is none.
func (r *CachedTDMRep) sha256Hex() string {
	if len(r.Body) == 0 {
		return ""
	}
	sum := sha256.Sum256(r.Body)
	return hex.EncodeToString(sum[:])
}

// tdmrepCache are those of the origins in play.
type tdmrepCache struct {
	mu                sync.Mutex
	states            recent.Map[decorum.Origin, *CachedTDMRep]
	lookupLeaseTokens map[decorum.Origin]uint64 // by which lease
}

// tdmrepCacheSize is how many are held in memory at least, twice as many at most: a
// file may be of 64 KiB. It is more than are in hand at a time.
const tdmrepCacheSize = 250

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

// claimLookup reports whether l may look up the file of its origin: nobody else does.
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

// releaseLookup ends the claim of l, if it has one.
func (rs *tdmrepCache) releaseLookup(l storage.Lease) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if by, claimed := rs.lookupLeaseTokens[urlToVisit(l.Entry).Origin()]; claimed && by == l.Token {
		delete(rs.lookupLeaseTokens, urlToVisit(l.Entry).Origin())
	}
}

// cachedTDMRep returns what is known of an origin's file, of this run or before.
func (p *prerequisites) cachedTDMRep(ctx context.Context, o decorum.Origin) (*CachedTDMRep, error) {
	if r := p.tdmrepCache.get(o); r != nil {
		return r, nil
	}
	return p.loadCachedTDMRep(ctx, o)
}

// loadCachedTDMRep returns what the notes say of it: another process may have learnt
// more than this one has in mind.
func (p *prerequisites) loadCachedTDMRep(ctx context.Context, o decorum.Origin) (*CachedTDMRep, error) {
	r, err := ReadCachedTDMRep(ctx, p.frontier.Store(), o)
	if err == nil {
		p.tdmrepCache.put(o, r)
	}
	return r, err
}

// tdmrepClearance asks the tdmrep.json of the origin whether the page may be visited that
// robots.txt has cleared, if the crawl mines text and data. It returns the
// clearance, or one for the file, if that must come first.
func (p *prerequisites) tdmrepClearance(ctx context.Context, l storage.Lease, cl gate.Clearance) (gate.Clearance, decorum.Decision, error) {
	o, now := cl.URL().Origin(), p.now()
	kind := visitKindOf(l, cl)
	if !kind.IsPage() && kind != RobotsRefresh || !o.IsHTTP() || !aiuse.PurposesIncludeTDM(p.gate.Purposes()) {
		return cl, decorum.Decision{}, nil
	}
	r, err := p.cachedTDMRep(ctx, o)
	if err != nil {
		return gate.Clearance{}, decorum.Decision{}, err
	}
	if !r.isFresh(now) {
		file, err := cl.ClearOtherURL(aiuse.TDMRepURL(o))
		if err == nil {
			r, err = p.loadCachedTDMRep(ctx, o)
		}
		switch {
		case errors.Is(err, decorum.Disallowed): // what may not be read says nothing
		case err != nil:
			return gate.Clearance{}, decorum.Decision{}, err
		case r.isFresh(now): // somebody else has asked
		case p.tdmrepCache.claimLookup(l):
			return file, decorum.Decision{}, nil
		default:
			return gate.Clearance{}, tdmrepPostponedDecision(cl.URL(), decorum.Pending, now.Add(recheckDelay)), nil
		}
	}
	d, err := r.decision(now, cl.URL(), p.gate.Purposes(), cl.FetchSummary())
	if d.Reason == decorum.ReasonTDMRep && !kind.IsPage() {
		d = decorum.Decision{} // it only keeps the file fresh, and visits no page
	}
	if err != nil || d.Action != decorum.Proceed {
		return gate.Clearance{}, d, err
	}
	if !r.firstUseGraceUntil.IsZero() {
		served := *r
		served.firstUseGraceUntil = time.Time{}
		p.tdmrepCache.put(o, &served)
	}
	return cl, decorum.Decision{}, nil
}

// decision returns how the file decides about a visit to u at now for these purposes: pages may wait
// for it, or it reserves u, which robots.txt allows as file says.
func (r *CachedTDMRep) decision(now time.Time, u decorum.URL, purposes []string, file gate.FetchSummary) (decorum.Decision, error) {
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

// tdmrepPostponedDecision returns the Decision about a page that waits for the file of its
// origin: which is Pending, or Unreachable.
func tdmrepPostponedDecision(u decorum.URL, kind decorum.ErrorKind, until time.Time) decorum.Decision {
	d := decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonTDMRepUnreachable, Until: until}
	if kind == decorum.Pending {
		d.Reason = decorum.ReasonTDMRepPending
	}
	d.Cause = &decorum.Error{Op: "use", URL: u.String(), Kind: kind, Err: &tdmrepPostponedError{d.Reason, until}}
	return d
}

// A tdmrepPostponedError says that pages wait for the file of their origin.
type tdmrepPostponedError struct {
	reason decorum.DecisionReason
	until  time.Time
}

// Error says why, and until when.
func (e *tdmrepPostponedError) Error() string {
	why := "its tdmrep.json cannot be had"
	if e.reason == decorum.ReasonTDMRepPending {
		why = "its tdmrep.json is being fetched"
	}
	return why + "; closed until " + e.until.UTC().Format(time.RFC3339)
}

// handleTDMRepResponse learns what came back for a tdmrep.json. The page whose turn
// it was goes back and waits the host's rest.
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
		p.log.Warn("origin waits: its tdmrep.json cannot be had", "origin", o, "attempts", r.ConsecutiveFailures, "again_at", r.RefetchAt)
		return result, p.frontier.Hold(ctx, o, r.RefetchAt, isHostNotFound(v.Err))
	}
	if !bytes.Equal(r.Body, before.Body) {
		err = p.unparkAllowed(ctx, o)
	}
	return result, errors.Join(err, p.frontier.Hold(ctx, o, time.Time{}, false))
}

// updatedCachedTDMRep returns what is known of a file after v. Who answers that there is none
// has none. A server that fails is asked again, and has what it had before, or
// none, if it fails on.
func (p *prerequisites) updatedCachedTDMRep(r CachedTDMRep, v *Visit) *CachedTDMRep {
	if _, failed := visitFailureClass(v); failed {
		r.ConsecutiveFailures++
		r.RefetchAt = v.End.Add(tdmrepRetryDelay << min(r.ConsecutiveFailures-1, maxTDMRepFailures))
		if r.ConsecutiveFailures >= maxTDMRepFailures {
			r.ConsecutiveFailures, r.RefetchAt, r.firstUseGraceUntil = maxTDMRepFailures, v.End.Add(p.settings.TDMRepTTL), v.End.Add(maxGrace)
		}
		return &r
	}
	r = CachedTDMRep{FetchedAt: v.End, RefetchAt: v.End.Add(p.settings.TDMRepTTL), firstUseGraceUntil: v.End.Add(maxGrace)}
	if !v.OK() {
		return &r
	}
	r.Body = v.Response.Body
	var damage error
	if r.parsed, damage = aiuse.ParseTDMRep(r.Body); damage != nil {
		p.log.Info("tdmrep.json is damaged; what could be read of it counts", "url", v.URL(), "error", damage)
	}
	return &r
}
