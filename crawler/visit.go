package crawler

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/extract"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// A Visit is one request and what came of it.
type Visit struct {
	Lease     storage.Lease        // the URL that was in hand: for a robots.txt, the one that needs it
	Kind      VisitKind            // what the visit is to
	Clearance gate.Clearance       // what allowed the request
	Start     time.Time            // of the request
	End       time.Time            // of the answer; the host rests from here
	Response  *decorum.Response    // nil if no whole answer came
	Err       error                // why not; or what the handler returned
	LinkCount int                  // how many links the handler returned
	Exchange  *decorum.RawExchange // the bytes sent and received; nil if the fetcher keeps none, or nothing was sent

	remoteAddr             netip.Addr    // that the request went to; zero: it is not known
	mayHaveArrived         bool          // its host may have seen an attempt although this machine is to blame
	hostSlots              int           // visits at a time that the host may have
	timerLag               time.Duration // by which timers were late while it was made
	previousEnd            time.Time     // end of the host's last visit when this one began; zero for its first
	headerScanResult       lazy[*extract.ScanResult]
	pageScanResult         lazy[*extract.ScanResult]
	contentUsageAssessment lazy[ContentUsageAssessment]
	bodySHA256             func() [sha256.Size]byte
	bodyShare              *bodymem.VisitShare      // what the body holds; nil: it is not counted
	bodySpool              *bodymem.CompressedSpool // the body of a sitemap; nil: it is in Response
	interrupted            bool                     // the crawl ended it: the server is not to blame
	unsafeSendRecorded     bool                     // its request must not be sent again
	contentWithheld        bool                     // its handler did not get its content
	withheldBytes          int                      // how much of it is not shown, in bytes
}

// URL returns what was asked for: the leased URL, or its origin's robots.txt.
func (v *Visit) URL() decorum.URL { return v.Clearance.URL() }

// Status returns the answer's status code, 0 if there was none.
func (v *Visit) Status() int {
	if v.Response == nil {
		return 0
	}
	return v.Response.Status
}

// IsRevisit reports whether the page had been visited before.
func (v *Visit) IsRevisit() bool { return v.Lease.VisitHistorySummary != nil }

// SourceKind returns how the URL came to be visited. A feed remains one in the
// frontier, though it is visited again.
func (v *Visit) SourceKind() storage.Source { return visitSource(v.Lease) }

// WasSent reports whether the request left, as far as we know: its server may have
// seen it.
func (v *Visit) WasSent() bool { return !v.wasNeverSent() }

// wasNeverSent reports whether the request was refused on our side, or by a callback,
// and never left.
func (v *Visit) wasNeverSent() bool {
	if v.Response != nil {
		return false
	}
	refusals := []error{decorum.Forbidden, decorum.Invalid, decorum.Unticketed, decorum.Dropped, decorum.Panicked}
	return slices.ContainsFunc(refusals, func(kind error) bool { return errors.Is(v.Err, kind) }) ||
		v.Lease.Sent && errors.Is(v.Err, decorum.InDoubt)
}

// BodyLen returns how long the body of the answer was, as decoded, also of one that is
// withheld.
func (v *Visit) BodyLen() int {
	if v.Response == nil {
		return 0
	}
	if v.bodySpool != nil {
		return int(v.bodySpool.Len())
	}
	return v.withheldBytes + len(v.Response.Body)
}

// OpenBody returns a reader of the decoded body, as far as it was read. It is the only
// access to the body of a sitemap: Response.Body is nil where the Fetcher keeps it
// compressed. Only one reader at a time may be used.
func (v *Visit) OpenBody() io.Reader {
	switch {
	case v.Response == nil:
		return bytes.NewReader(nil)
	case v.bodySpool != nil:
		return v.bodySpool.Open()
	}
	return bytes.NewReader(v.Response.Body)
}

// OK reports whether the answer is a 2xx.
func (v *Visit) OK() bool { return v.Status()/100 == 2 }

// RequiredDelay returns the rest that the host was owed before this visit, 0 for
// its first.
func (v *Visit) RequiredDelay() time.Duration { return v.Lease.HostState.LostVisitDelay }

// ObservedDelay returns the rest that the host had: from the end of the visit
// before. It is 0 for the host's first visit.
func (v *Visit) ObservedDelay() time.Duration { return sinceLastHostVisit(v.Lease.HostState, v.Start) }

// PageScanResult returns what extract.Scanner.ScanPage finds in the page, nil if it is no HTML.
// The page is scanned once, when PageScanResult is called first.
func (v *Visit) PageScanResult() *extract.ScanResult { return v.pageScanResult.get() }

// HeaderScanResult returns what extract.Scanner.ScanHeaderLinks finds in the header of the
// answer, nil if there is none. It is scanned once.
func (v *Visit) HeaderScanResult() *extract.ScanResult { return v.headerScanResult.get() }

// A lazy value is found when it is first asked for; nil is the zero value.
type lazy[T any] func() T

func (l lazy[T]) get() (value T) {
	if l != nil {
		value = l()
	}
	return value
}

// BodySHA256 returns the SHA-256 of the answer's body, as it is decoded and as far as
// it was read; that of nothing if there is none. It is computed once, when it is first
// asked for: of a visit that a crawl makes, by anybody and at any time.
func (v *Visit) BodySHA256() [sha256.Size]byte {
	if v.bodySHA256 == nil {
		return lazyBodySHA256(v.Response)()
	}
	return v.bodySHA256()
}

// lazyBodySHA256 returns what hashes the body of an answer, when it is first asked.
func lazyBodySHA256(res *decorum.Response) func() [sha256.Size]byte {
	return sync.OnceValue(func() [sha256.Size]byte {
		if res == nil {
			return sha256.Sum256(nil)
		}
		return sha256.Sum256(res.Body)
	})
}

// CanonicalURL returns the URL that the page says is the one to use for it, in the
// page or else in the header; zero if it names none.
func (v *Visit) CanonicalURL() decorum.URL {
	for _, doc := range []*extract.ScanResult{v.PageScanResult(), v.HeaderScanResult()} {
		if doc != nil && !doc.CanonicalURL.IsZero() {
			return doc.CanonicalURL
		}
	}
	return decorum.URL{}
}

// A LinkToVisit is a URL that a handler wants visited.
type LinkToVisit struct {
	URL          decorum.URL            // where to
	CallbackData []byte                 // travels with the URL to its own visit; at most storage.MaxCallbackDataBytes bytes
	Request      *storage.NonGETRequest // how it is asked for; nil: by GET

	isFeedOrFeedEntry bool // a feed announces it, or it is one that a page announces
}

func (l LinkToVisit) discoverySource() storage.Source {
	if l.isFeedOrFeedEntry {
		return storage.SourceFeed
	}
	return storage.SourceLink
}

// A Handler reads a page: any answer to a page's request, whatever its status,
// but not 304, which says that the page is as it was.
// The links it returns are discovered before the page is acked. Its error is
// its verdict: nil is done, decorum.RetryAfter(d) is later, decorum.Drop(why)
// gives the URL up, anything else retries with back-off; but the error of its context,
// which is done when the crawl is halted, is none: the page is visited again. It may be
// called by many workers at a time. A panic is caught, logged and counted.
type Handler func(context.Context, *Visit) ([]LinkToVisit, error)

// Hooks look on; nil means that nobody does. They are called by many workers
// at a time, and must not block. Of a page that is withheld (Visit.ContentWithheld) they see
// what is written down: its header and its BodyLen, but not its content.
type Hooks struct {
	VisitRefused    func(storage.Lease, decorum.Decision) // a leased URL that may not be visited now, and why
	Visited         func(*Visit)                          // every request, robots.txt and sitemaps too
	RobotsFetched   func(gate.RecordFetchResult)          // what came of a visit to a robots.txt
	RetryScheduled  func(*Visit, FailureClass)            // a page that will be asked for again, and why
	Acked           func(storage.Ack)                     // every lease that has ended, and what becomes of its URL
	SkippedInDryRun func(storage.Lease, gate.Clearance)   // a page that a run with Settings.DryRun would visit
}

// A Recorder writes down visits, each before it is acked: a crash may repeat a
// record and never misses one. It is called by many workers
// at a time. One that cannot write for the moment (the disk is full) waits
// until it can, or until ctx is done: the crawl pauses with it. Any other error
// stops the crawl.
type Recorder interface {
	Record(context.Context, *Visit) error
}

// takeFromTicket takes what the fetcher left with the ticket of v, besides the response and the error.
func (v *Visit) takeFromTicket(t Ticket) {
	v.Exchange, v.unsafeSendRecorded = t.data.rawExchange, t.isUnsafeSendRecorded()
	v.hostSlots = t.data.permit.HostSlots()
	if addr := t.data.remoteAddr.Load(); addr != nil {
		v.remoteAddr = *addr
	}
	v.bodyShare, v.bodySHA256 = t.data.bodyShare, lazyBodySHA256(v.Response)
	if v.Response == nil {
		return
	}
	v.Start, v.End = v.Response.Start, v.Response.End
	if t.data.bodySpool != nil {
		v.bodySpool, v.bodySHA256 = t.data.bodySpool, t.data.bodySpool.SHA256
	}
}
