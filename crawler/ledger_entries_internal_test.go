package crawler

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// A listLedger is a Ledger in memory, which can be made to fail.
type listLedger struct {
	records []*ledger.Record
	files   []string // hashes of the stored robots.txt files
	err     error    // nil: it works
}

func (l *listLedger) Append(_ context.Context, r *ledger.Record) (int64, error) {
	if l.err != nil {
		return 0, l.err
	}
	l.records = append(l.records, r)
	return int64(len(l.records)), nil
}

func (l *listLedger) HasRobotsFile(hash string) bool { return slices.Contains(l.files, hash) }

func (l *listLedger) StoreRobotsFile(_ context.Context, hash string, _ []byte) error {
	if l.err == nil {
		l.files = append(l.files, hash)
	}
	return l.err
}

// newLedgerEntries returns ledgerEntries that write to l.
func (p *partsFixture) newLedgerEntries(l *listLedger) *ledgerEntries {
	return &ledgerEntries{ledger: l, gate: p.gate, store: p.store, now: time.Now}
}

// TestRequestThatCannotBeWrittenIsNotSent: the error prevents the request, and stops the crawl
// unless the crawl is ending; a request that must not be sent twice is not marked as sent.
func TestRequestThatCannotBeWrittenIsNotSent(t *testing.T) {
	broken := errors.New("the disk is broken")
	for _, halted := range []bool{false, true} {
		p := newPartsFixture(t)
		u := mustParseURL(t, "http://a.test/box")
		cl := p.learnRobots(t, u, "")
		p.discover(t, storage.Entry{URL: u, Request: &storage.NonGETRequest{Method: http.MethodPost}})
		l := p.leaseOne(t)
		kept := &listLedger{err: broken}
		e, ticket := p.newLedgerEntries(kept), Ticket{&ticketData{clearance: cl, lease: l}}
		if err := e.markSentDurably(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		ticket.data.unsafeSendRecorded.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if halted {
			cancel()
		}
		if err := e.writeLedgerRequest(ctx, ticket); !errors.Is(err, decorum.NotDue) || !errors.Is(err, errNotMarked) {
			t.Errorf("halted %t: error %v, want one that forbids sending", halted, err)
		}
		if ticket.isUnsafeSendRecorded() {
			t.Errorf("halted %t: the ticket says that it was sent", halted)
		}
		v := visitOf(l, cl, http.StatusOK, nil, "")
		kept.err = nil
		if err := e.writeLedgerResponse(ctx, v, ticket); halted != (err == nil) || !halted && !errors.Is(err, broken) {
			t.Errorf("halted %t: what stops the crawl is %v", halted, err)
		}
		if len(kept.records) != 0 {
			t.Errorf("halted %t: %d records of a request that was not sent", halted, len(kept.records))
		}
		p.ack(t, l, leaseOutcome{outcome: storage.Requeue})
		if again := p.leaseNow(t, 1); len(again) != 1 || again[0].Sent {
			t.Errorf("halted %t: leased again are %+v, want what was not sent", halted, again)
		}
	}
}

// TestResponseThatCannotBeWritten: the visit counts as interrupted, and is repeated.
func TestResponseThatCannotBeWritten(t *testing.T) {
	p, broken := newPartsFixture(t), errors.New("the disk is broken")
	u := mustParseURL(t, "http://a.test/")
	cl, l, kept := p.learnRobots(t, u, ""), p.leaseURL(t, "http://a.test/"), &listLedger{}
	e, ticket := p.newLedgerEntries(kept), Ticket{&ticketData{clearance: cl, lease: l}}
	if err := e.writeLedgerRequest(t.Context(), ticket); err != nil {
		t.Fatal(err)
	}
	v := visitOf(l, cl, http.StatusOK, nil, "hello")
	if err := e.writeLedgerResponse(t.Context(), v, ticket); err != nil || v.interrupted {
		t.Errorf("error %v, broken off %t, of a ledger that works", err, v.interrupted)
	}
	if n := len(kept.records); n != 2 || kept.records[0].Request.URL != u.String() ||
		kept.records[1].Response.RequestNumber != 1 || kept.records[1].Response.Status != http.StatusOK ||
		kept.records[1].Response.BodyBytes != 5 {
		t.Errorf("the ledger has %d records: %+v", n, kept.records)
	}
	kept.err = broken
	if err := e.writeLedgerResponse(t.Context(), v, ticket); !errors.Is(err, broken) || !v.interrupted {
		t.Errorf("error %v, broken off %t, of a ledger that is broken", err, v.interrupted)
	}
}

// TestRobotsFileIsStoredBeforeItIsNamed: each file is stored once; if the gate no longer has the file,
// or the ledger cannot store it, the result says so.
func TestRobotsFileIsStoredBeforeItIsNamed(t *testing.T) {
	p, broken := newPartsFixture(t), errors.New("the disk is broken")
	u := mustParseURL(t, "http://a.test/")
	file, kept := p.learnRobots(t, u, "User-agent: *\nDisallow: /x\n").FetchSummary(), &listLedger{err: broken}
	e := p.newLedgerEntries(kept)
	if stored, err := e.storeRobotsInLedger(t.Context(), u.Origin(), file); stored || !errors.Is(err, broken) {
		t.Errorf("by a ledger that is broken: %t, %v", stored, err)
	}
	kept.err = nil
	for range 2 {
		if stored, err := e.storeRobotsInLedger(t.Context(), u.Origin(), file); !stored || err != nil {
			t.Errorf("by a ledger that works: %t, %v", stored, err)
		}
	}
	if !slices.Equal(kept.files, []string{file.SHA256}) {
		t.Errorf("stored are %q, want %s once", kept.files, file.SHA256)
	}
	file.SHA256 = "5ac3d0d8a1c2e2d0b5d0a6f3a3d3c9c4d1a0b0a9d8c7b6a5948372615049382a"
	if stored, err := e.storeRobotsInLedger(t.Context(), u.Origin(), file); stored || err != nil {
		t.Errorf("a file that the gate does not have: %t, %v", stored, err)
	}
}
