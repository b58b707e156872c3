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

// A Ledger keeps what permitted each request: *ledger.Ledger, and somebody who
// waits for the disk. One that cannot write for the moment (the disk is full) waits
// until it can, or until ctx is done: the crawl pauses with it, and what it cannot
// write down is not sent. Any other error stops the crawl. It is called by many
// workers at a time.
type Ledger interface {
	// Append writes a record so that it outlives the process, and returns its number.
	Append(ctx context.Context, r *ledger.Record) (int64, error)
	// HasRobotsFile reports whether the robots.txt with a SHA-256, in hex, is kept.
	HasRobotsFile(hash string) bool
	// StoreRobotsFile keeps one, and returns when it is on the disk.
	StoreRobotsFile(ctx context.Context, hash string, body []byte) error
}

// NewLedgerRunStart returns what a ledger says of a crawl that this program makes by a policy: its
// rests. Who makes it, and how it reads robots.txt, is for the caller to add.
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

// ledgerEntries writes what the ledger says of a visit: before it is sent, when it is over, and
// where a URL was refused.
type ledgerEntries struct {
	ledger          Ledger // nil: there is none
	gate            *gate.Gate
	store           storage.Store // where requests are marked that must not be sent twice
	policy          politeness.Policy
	content         *contentAnalyzer
	recordsRefusals bool
	now             func() time.Time
}

// storeRobotsInLedger keeps the robots.txt that a clearance or a refusal rests on, before
// anything is written that names it. It reports whether that is done: the gate may
// have forgotten a file that was replaced meanwhile.
func (e *ledgerEntries) storeRobotsInLedger(ctx context.Context, o decorum.Origin, file gate.FetchSummary) (bool, error) {
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

// ledgerErrorUnlessCanceled returns err as one that stops the crawl, but nil if it only says that the
// crawl is ending while the ledger waits for the disk.
func ledgerErrorUnlessCanceled(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("cannot write the ledger: %w", err)
}

// writeLedgerRequest writes down that the request of a ticket is sent now, and what permits it.
// If that fails nothing is to be sent.
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
	if t.isUnsafeSendRecorded() { // and yet it is not sent
		err = errors.Join(err, e.store.MarkSent(commitContext(ctx), t.Lease(), false))
		t.data.unsafeSendRecorded.Store(false)
	}
	return &decorum.Error{Op: "send", URL: t.URL().String(), Kind: decorum.NotDue, Err: errors.Join(errNotMarked, err)}
}

// newLedgerRequest returns what a ticket proves.
func (e *ledgerEntries) newLedgerRequest(t Ticket, now time.Time) *ledger.Request {
	l, cl := t.Lease(), t.data.clearance
	q := &ledger.Request{
		URL: t.URL().String(), Kind: t.Kind().Ledger(), Origin: cl.RobotsOrigin().String(),
		URLSource: visitSource(l).String(), Referrer: l.Referrer,
		RequiredDelayMS: l.HostState.LostVisitDelay.Milliseconds(), ObservedDelayMS: sinceLastHostVisit(l.HostState, now).Milliseconds(), Slots: t.data.permit.HostSlots(),
	}
	if r := t.Request(); r != nil {
		q.Method = r.Method
	}
	if addr := t.data.remoteAddr.Load(); addr != nil {
		q.ServerIP = addr.Unmap().String()
	}
	if !t.Kind().IsRobots() {
		q.RobotsVerdict = ledger.NewRobotsVerdict(cl.Verdict(), cl.FetchSummary())
	} else if q.URLSource = storage.SourcePrerequisite.String(); l.RobotsFor.IsZero() { // not that of the page whose turn it was
		q.Referrer = ""
	}
	if o, ok := e.policy.HostOverrides[t.URL().Origin().Host()]; ok && !o.Expired(now) {
		q.OverrideReason = cmp.Or(o.Reason, "no reason given")
	}
	return q
}

// visitSource returns how a URL came to be visited.
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

// writeLedgerResponse writes down what came of a visit whose request was written down, also
// where the lease has run out meanwhile or the crawl is being halted. One of which
// that cannot be kept is made again.
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

// writeLedgerRefusal writes down a URL that robots.txt or the scope closes, if refusals
// are.
func (e *ledgerEntries) writeLedgerRefusal(ctx context.Context, l storage.Lease, d decorum.Decision) error {
	refusal, byRules := errors.AsType[*gate.Refusal](d.Cause)
	if e.ledger == nil || !e.recordsRefusals || !byRules && d.Reason != decorum.ReasonScope {
		return nil
	}
	u := urlToVisit(l.Entry)
	q := &ledger.Refusal{URL: u.String(), Origin: u.Origin().String(), URLSource: visitSource(l).String(), Referrer: l.Referrer, Reason: ledger.TruncateText(d.Err().Error())}
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
