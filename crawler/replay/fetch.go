package replay

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
)

// errNotInLedger ends a visit that the ledger does not contain.
var errNotInLedger = errors.New("the ledger does not contain it")

// A clock is the clock of a replay: it shows the time of the ledger, and never goes back.
type clock struct{ nanos atomic.Int64 } // since 1970

// advance moves the clock to the time of a record. Records have times truncated to the microsecond,
// so the clock moves to the end of the microsecond: a host that was due then is due.
func (c *clock) advance(t time.Time) {
	if n := t.Add(time.Microsecond).UnixNano(); n > c.nanos.Load() {
		c.nanos.Store(n)
	}
}

// Now returns the time of the replay.
func (p *LedgerReplayer) Now() time.Time { return time.Unix(0, p.clock.nanos.Load()).UTC() }

// A ledgerPacedFetcher is a Fetcher that makes each visit wait until the ledger shows its answer.
type ledgerPacedFetcher struct {
	replayer *LedgerReplayer
	inner    crawler.Fetcher
}

// Fetch implements crawler.Fetcher.
func (f ledgerPacedFetcher) Fetch(ctx context.Context, t crawler.Ticket) (*decorum.Response, error) {
	// Report the ticket, and wait for the decision of the replayer.
	v := f.replayer.currentVisit
	v.ticket = t
	v.ticketReady <- true
	if err := <-v.proceedDecision; err != nil {
		return nil, &decorum.Error{Op: "replay", URL: t.URL().String(), Kind: decorum.Dropped, Err: err}
	}
	res, err := f.inner.Fetch(ctx, t)
	if res != nil {
		res.Start, res.End = v.requestInterval.start, v.requestInterval.end
	}
	return res, err
}

// ReleaseVisitResources implements crawler.VisitResourceReleaser.
func (f ledgerPacedFetcher) ReleaseVisitResources(t crawler.Ticket) {
	if inner, ok := f.inner.(crawler.VisitResourceReleaser); ok {
		inner.ReleaseVisitResources(t)
	}
}

// RoundTrip implements http.RoundTripper. It answers the request of the current visit from the
// archive, and so makes the LedgerReplayer the transport of the crawl that it replays.
func (p *LedgerReplayer) RoundTrip(req *http.Request) (*http.Response, error) {
	recorded := p.currentVisit.ledgerRequest
	switch {
	case recorded.answer == nil:
		return nil, errNotInLedger
	case recorded.answer.Status == 0:
		return nil, recreateError(recorded.answer.Error, req.URL.Hostname())
	}
	raw, err := p.archiveIndex.findResponse(recorded.URL, recorded.answer.EndedAt)
	if err != nil {
		p.reportDifference(recorded.recordNumber, recorded.URL, "it cannot be replayed: %v", err)
		return nil, err
	}
	r := bufio.NewReader(bytes.NewReader(raw))
	res, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, err
	}
	// Only the header was archived if the site refused the use of the content.
	if _, noBody := r.Peek(1); noBody != nil && recorded.answer.BodyBytes > 0 {
		p.currentVisit.headerOnly = true
		res.Body, res.ContentLength = http.NoBody, -1
		res.Header.Del("Content-Encoding") // the replay has no body to decode
	}
	return res, nil
}

// recreateError returns an error with the recorded text, in the same crawler.FailureClass as the
// recorded error.
func recreateError(text, host string) error {
	switch {
	case strings.Contains(text, "no such host"):
		return &net.DNSError{Err: text, Name: host, IsNotFound: true}
	case strings.Contains(text, "connection refused"):
		return fmt.Errorf("%s: %w", text, syscall.ECONNREFUSED)
	case strings.Contains(text, "tls:"), strings.Contains(text, "x509:"), strings.Contains(text, "certificate"):
		return &tls.CertificateVerificationError{Err: errors.New(text)}
	case strings.Contains(text, "malformed"):
		return &decorum.Error{Op: "read", URL: host, Kind: decorum.Malformed, Err: errors.New(text)}
	}
	return errors.New(text)
}
