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

// errNotInLedger ends a visit that the ledger does not show.
var errNotInLedger = errors.New("the ledger does not show it")

// A clock tells the time of the ledger. It never goes back.
type clock struct{ nanos atomic.Int64 }

// advance moves the clock to when a record was written. Records have the time to the
// microsecond that had begun: what was due then is due at its end.
func (c *clock) advance(t time.Time) {
	if n := t.Add(time.Microsecond).UnixNano(); n > c.nanos.Load() {
		c.nanos.Store(n)
	}
}

// Now returns the time of the replay.
func (p *LedgerReplayer) Now() time.Time { return time.Unix(0, p.clock.nanos.Load()).UTC() }

// A ledgerPacedFetcher has each visit wait for its answer.
type ledgerPacedFetcher struct {
	replayer *LedgerReplayer
	inner    crawler.Fetcher
}

// Fetch implements crawler.Fetcher.
func (f ledgerPacedFetcher) Fetch(ctx context.Context, t crawler.Ticket) (*decorum.Response, error) {
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

// RoundTrip answers the request that goes on from the archive. It makes the LedgerReplayer
// the transport of a crawl that it replays.
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
	if _, noBody := r.Peek(1); noBody != nil && recorded.answer.BodyBytes > 0 { // it was not to be used
		p.currentVisit.headerOnly = true
		res.Body, res.ContentLength = http.NoBody, -1
		res.Header.Del("Content-Encoding") // of nothing
	}
	return res, nil
}

// recreateError returns an error of the class that the recorded one was of: see
// crawler.FailureClass.
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
