package crawler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// A Ledger records what permitted each request. *ledger.Ledger is one, usually behind a wrapper
// that waits for disk space. A Ledger that cannot write for now, for example because the disk is
// full, waits until it can or ctx is done; the worker waits with it, and a request that cannot be
// recorded is not sent. Any other error stops the crawl. Many workers call it at a time.
type Ledger interface {
	// Append writes a record so that it outlives the process, and returns its number.
	Append(ctx context.Context, r *ledger.Record) (int64, error)
	// HasRobotsFile reports whether the ledger has the robots.txt with this SHA-256, in hex.
	HasRobotsFile(hash string) bool
	// StoreRobotsFile stores a robots.txt, and returns once it is on disk.
	StoreRobotsFile(ctx context.Context, hash string, body []byte) error
}

// NewLedgerRunStart returns the ledger record of a run by this program with policy p: the software
// and the delays. The caller adds who runs the crawl, and how it reads robots.txt.
func NewLedgerRunStart(p politeness.Policy) ledger.RunStart {
	run := ledger.RunStart{
		Software: "decorum/" + decorum.Version(), DelayMS: max(p.WithDefaults().Delay, 0).Milliseconds(),
		HostOverrides: make(map[string]ledger.HostOverride, len(p.HostOverrides)),
	}
	for host, o := range p.HostOverrides {
		override := ledger.HostOverride{Reason: ledger.TruncateText(o.Reason), ExpiresAt: o.Expires}
		if o.Delay != nil {
			override.DelayMS = new(max(p.ForHost(host, time.Time{}).Delay, 0).Milliseconds())
		}
		run.HostOverrides[host] = override
	}
	return run
}

// ledgerEntries writes the ledger records of a visit: the request before it is sent, the response
// when the visit is over, and refusals.
type ledgerEntries struct {
	ledger          Ledger // nil: no ledger
	gate            *gate.Gate
	store           storage.Store // marks requests that must not be sent twice
	policy          politeness.Policy
	content         *contentAnalyzer
	recordsRefusals bool
	now             func() time.Time
}

// storeRobotsInLedger stores the robots.txt that a clearance or a refusal is based on, before any
// record names it. It returns false if the gate no longer has the file, because a new one replaced
// it.
func (e *ledgerEntries) storeRobotsInLedger(ctx context.Context, o decorum.Origin,
	file gate.FetchSummary) (bool, error) {
	if e.ledger == nil || file.SHA256 == "" || e.ledger.HasRobotsFile(file.SHA256) {
		return true, nil
	}
	body, err := e.gate.FileBodyByHash(ctx, o, file.SHA256)
	if err != nil || body == nil {
		return false, err
	}
	err = e.ledger.StoreRobotsFile(ctx, file.SHA256, body)
	return err == nil, ledgerErrorUnlessCanceled(ctx, err)
}

// ledgerErrorUnlessCanceled returns err as an error that stops the crawl; nil if ctx is done,
// because then the ledger only stopped waiting for the disk.
func ledgerErrorUnlessCanceled(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("cannot write the ledger: %w", err)
}

// writeLedgerRequest records that the request of t is about to be sent, and what permits it. If it
// returns an error, the caller must not send the request.
func (e *ledgerEntries) writeLedgerRequest(ctx context.Context, t Ticket) error {
	if e.ledger == nil {
		return nil
	}
	n, err := e.ledger.Append(ctx, &ledger.Record{Request: e.newLedgerRequest(t, e.now())})
	if err == nil {
		t.data.ledgerNumber = n
		return nil
	}
	t.data.ledgerFailed, t.data.ledgerErr = true, ledgerErrorUnlessCanceled(ctx, err)
	if t.isUnsafeSendRecorded() { // the mark is wrong: nothing is sent
		err = errors.Join(err, e.store.MarkSent(commitContext(ctx), t.Lease(), false))
		t.data.unsafeSendRecorded.Store(false)
	}
	return &decorum.Error{Op: "send", URL: t.URL().String(), Kind: decorum.NotDue, Err: errors.Join(errNotMarked, err)}
}

// newLedgerRequest returns the record of the request of t.
func (e *ledgerEntries) newLedgerRequest(t Ticket, now time.Time) *ledger.Request {
	l, cl := t.Lease(), t.data.clearance
	q := &ledger.Request{
		URL: t.URL().String(), Kind: t.Kind().Ledger(), Origin: cl.RobotsOrigin().String(),
		URLSource: visitSource(l).String(), Referrer: l.Referrer,
		RequiredDelayMS: l.HostState.LostVisitDelay.Milliseconds(),
		ObservedDelayMS: sinceLastHostVisit(l.HostState, now).Milliseconds(), Slots: t.data.permit.HostSlots(),
	}
	if r := t.Request(); r != nil {
		q.Method = r.Method
	}
	if addr := t.data.remoteAddr.Load(); addr != nil {
		q.ServerIP = addr.Unmap().String()
	}
	if !t.Kind().IsRobots() {
		q.RobotsVerdict = ledger.NewRobotsVerdict(cl.Verdict(), cl.FetchSummary())
	} else if q.URLSource = storage.SourcePrerequisite.String(); l.RobotsFor.IsZero() {
		// The lease is of the page that waits for this file: its source and referrer are not the file's.
		q.Referrer = ""
	}
	if o, ok := e.policy.HostOverrides[t.URL().Origin().Host()]; ok && !o.Expired(now) {
		q.OverrideReason = cmp.Or(o.Reason, "no reason given")
	}
	return q
}

// visitSource returns how the crawl came to visit the URL of l.
func visitSource(l storage.Lease) storage.Source {
	if l.VisitHistorySummary != nil {
		return storage.SourceRevisit
	}
	return l.Source
}

// sinceLastHostVisit returns how long a host has rested at now, 0 if it was never visited.
func sinceLastHostVisit(h storage.HostState, now time.Time) time.Duration {
	if h.Due.IsZero() {
		return 0
	}
	return now.Sub(h.Due) + h.LostVisitDelay
}

// writeLedgerResponse records the result of a visit whose request was recorded, also if the lease
// has expired or the crawl is being halted. If the record cannot be written, the visit counts as
// interrupted and is repeated.
func (e *ledgerEntries) writeLedgerResponse(ctx context.Context, v *Visit, t Ticket) error {
	if t.data.ledgerErr != nil {
		return t.data.ledgerErr
	}
	if t.data.ledgerNumber == 0 {
		return nil
	}
	a := &ledger.Response{RequestNumber: t.data.ledgerNumber, EndedAt: v.End, Status: v.Status()}
	if v.Response != nil {
		a.BodyBytes = v.BodyLen()
	}
	if v.Err != nil {
		a.Error = ledger.TruncateText(v.Err.Error())
	}
	if v.contentUsageAssessment != nil && e.content.forbidsContentUse(v) {
		a.WithheldReason = ledger.TruncateText(v.ContentUsageAssessment().PurposeConflict.Error())
	}
	ctx = commitContext(ctx)
	_, err := e.ledger.Append(ctx, &ledger.Record{Response: a})
	v.interrupted = v.interrupted || err != nil
	return ledgerErrorUnlessCanceled(ctx, err)
}

// writeLedgerRefusal records that robots.txt, tdmrep.json or the scope refused l, if refusals are
// recorded.
func (e *ledgerEntries) writeLedgerRefusal(ctx context.Context, l storage.Lease, d decorum.Decision) error {
	refusal, byRules := errors.AsType[*gate.Refusal](d.Cause)
	if e.ledger == nil || !e.recordsRefusals || !byRules && d.Reason != decorum.ReasonScope {
		return nil
	}
	u := urlToVisit(l.Entry)
	q := &ledger.Refusal{URL: u.String(), Origin: u.Origin().String(), URLSource: visitSource(l).String(),
		Referrer: l.Referrer, Reason: ledger.TruncateText(d.Err().Error())}
	if d.Reason == decorum.ReasonRobots {
		stored, err := e.storeRobotsInLedger(ctx, u.Origin(), refusal.FetchSummary)
		if err != nil {
			return err
		}
		if stored {
			q.RobotsVerdict = ledger.NewRobotsVerdict(refusal.Verdict, refusal.FetchSummary)
		}
	}
	_, err := e.ledger.Append(ctx, &ledger.Record{Refusal: q})
	return ledgerErrorUnlessCanceled(ctx, err)
}
