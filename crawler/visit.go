package crawler

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/extract"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// A Visit is one request and its result.
type Visit struct {
	Lease      storage.Lease        // the leased URL; a visit to robots.txt or tdmrep.json is made for it
	Kind       VisitKind            // what the visit is to
	Clearance  gate.Clearance       // proof that the request was allowed
	Start      time.Time            // start of the request
	End        time.Time            // end of the answer; the host rests from here
	Response   *decorum.Response    // nil if no whole answer came
	Err        error                // why Response is nil, the handler's error, or damage of a sitemap
	LinkCount  int                  // number of links that the handler returned
	Links      []LinkToVisit        // these links, for a Recorder; nil if the content is withheld
	Exchange   *decorum.RawExchange // the bytes sent and received; nil if the fetcher keeps none, or nothing was sent
	Connection ConnectionUse        // which connection carried the request; zero if the fetcher does not say
	// NextVisit is when the host may be visited again, and DelayReason why not earlier. Both are set for
	// Hooks.Visited.
	NextVisit   politeness.NextVisit
	DelayReason politeness.DelayReason

	requestHeader          http.Header   // of the request, if the fetcher told it by Ticket.Validators; read-only
	remoteAddr             netip.Addr    // where the request went; zero if unknown
	mayHaveArrived         bool          // the host may have seen the request although this machine is to blame
	hostSlots              int           // visits that the host may have at a time
	timerLag               time.Duration // how late timers were, in sum, during the request
	previousEnd            time.Time     // end of the host's last visit when this one began; zero for its first
	headerScanResult       lazy[*extract.ScanResult]
	pageScanResult         lazy[*extract.ScanResult]
	contentUsageAssessment lazy[ContentUsageAssessment]
	bodySHA256             func() [sha256.Size]byte
	linkBuffer             *[]LinkToVisit           // the memory of Links, if other visits use it as well
	bodyShare              *bodymem.VisitShare      // memory charged for the body; nil if it is not counted
	bodySpool              *bodymem.CompressedSpool // the body of a sitemap; nil if it is in Response
	// the crawl or this machine ended the visit: the server is not to blame
	interrupted bool
	// the request is unsafe and marked as sent: it must not be sent again
	unsafeSendRecorded bool
	isDuplicateOnHost  bool // another URL of the host gave the same body before
	isSeedSitemap      bool // a seed, whose answer was read as a sitemap
	contentWithheld    bool // the handler did not get the content
	withheldBytes      int  // bytes of content left out of this copy
}

// A ConnectionUse says which connection carried the request of a visit. It is zero if no connection
// was established, except for the bytes of a failed TLS handshake.
type ConnectionUse struct {
	Reused           bool // the connection was open before the visit
	Opened           bool // the connection was opened for the visit
	FullHandshake    bool // opened with a full TLS handshake
	ResumedHandshake bool // opened with a TLS handshake that resumed an earlier session
	// WireBytesSent and WireBytesReceived are the bytes that the connection carried since the visit before:
	// see HostTraffic. Over HTTP/2, where visits share a connection, they belong to several visits, and the
	// sum over the visits counts each byte once. If the TLS handshake failed, they are those of the handshake.
	WireBytesSent     int64
	WireBytesReceived int64
}

// URL returns the URL of the request: the leased URL, or the robots.txt or tdmrep.json that it
// needs.
func (v *Visit) URL() decorum.URL { return v.Clearance.URL() }

// Status returns the status code of the answer, 0 if no whole answer came.
func (v *Visit) Status() int {
	if v.Response == nil {
		return 0
	}
	return v.Response.Status
}

// IsRevisit reports whether an earlier visit left a record of the page: Lease.VisitHistorySummary.
func (v *Visit) IsRevisit() bool { return v.Lease.VisitHistorySummary != nil }

// SourceKind returns how the crawl came to visit the URL: storage.SourceRevisit for every revisit, else
// how the URL was found. (In the frontier, a feed and a sitemap keep their source when revisited.)
func (v *Visit) SourceKind() storage.Source { return visitSource(v.Lease) }

// WasSent reports whether the server may have seen the request.
func (v *Visit) WasSent() bool { return !v.wasNeverSent() }

// wasNeverSent reports whether this side or a callback refused the request before it was sent.
func (v *Visit) wasNeverSent() bool {
	if v.Response != nil {
		return false
	}
	refusals := []error{decorum.Forbidden, decorum.Invalid, decorum.Unticketed, decorum.Dropped, decorum.Panicked}
	return slices.ContainsFunc(refusals, func(kind error) bool { return errors.Is(v.Err, kind) }) ||
		v.Lease.Sent && errors.Is(v.Err, decorum.InDoubt)
}

// BodyLen returns the length of the decoded body in bytes, withheld content included.
func (v *Visit) BodyLen() int {
	if v.Response == nil {
		return 0
	}
	if v.bodySpool != nil {
		return int(v.bodySpool.Len())
	}
	return v.withheldBytes + len(v.Response.Body)
}

// OpenBody returns a reader of the decoded body, as far as the fetcher read it. It is the only
// access to the body of a sitemap: Response.Body is nil where the Fetcher keeps it compressed. Use
// one reader at a time.
func (v *Visit) OpenBody() io.Reader {
	switch {
	case v.Response == nil:
		return bytes.NewReader(nil)
	case v.bodySpool != nil:
		return v.bodySpool.Open()
	}
	return bytes.NewReader(v.Response.Body)
}

// OK reports whether the status is 2xx.
func (v *Visit) OK() bool { return v.Status()/100 == 2 }

// RequiredDelay returns the rest that the host was due before this visit, 0 for its first visit.
func (v *Visit) RequiredDelay() time.Duration { return v.Lease.HostState.LostVisitDelay }

// ObservedDelay returns the rest that the host got: from the end of its last visit to Start. It is
// 0 for the host's first visit.
func (v *Visit) ObservedDelay() time.Duration { return sinceLastHostVisit(v.Lease.HostState, v.Start) }

// PageScanResult returns what extract.Scanner.ScanPage finds in the page, nil if the answer is not
// HTML. The first call scans the page; later calls return the same result.
func (v *Visit) PageScanResult() *extract.ScanResult { return v.pageScanResult.get() }

// Title returns the title of the page, "" if it has none or is not HTML.
func (v *Visit) Title() string {
	if page := v.PageScanResult(); page != nil {
		return page.Title
	}
	return ""
}

// HeaderScanResult returns what extract.Scanner.ScanHeaderLinks finds in the header of the answer,
// nil without an answer. The first call scans the header; later calls return the same result.
func (v *Visit) HeaderScanResult() *extract.ScanResult { return v.headerScanResult.get() }

// A lazy value is computed by its first get. A nil lazy gives the zero value.
type lazy[T any] func() T

func (l lazy[T]) get() (value T) {
	if l != nil {
		value = l()
	}
	return value
}

// BodySHA256 returns the SHA-256 of the decoded body, as far as the fetcher read it; of an empty
// body without an answer. The first call computes it. On a visit that a crawl made, several
// goroutines may call it.
func (v *Visit) BodySHA256() [sha256.Size]byte {
	if v.bodySHA256 == nil {
		return lazyBodySHA256(v.Response)()
	}
	return v.bodySHA256()
}

// lazyBodySHA256 returns a function that hashes the body of res on its first call.
func lazyBodySHA256(res *decorum.Response) func() [sha256.Size]byte {
	return sync.OnceValue(func() [sha256.Size]byte {
		if res == nil {
			return sha256.Sum256(nil)
		}
		return sha256.Sum256(res.Body)
	})
}

// CanonicalURL returns the canonical URL that the page names, or else its header; zero if neither
// names one.
func (v *Visit) CanonicalURL() decorum.URL {
	for _, doc := range []*extract.ScanResult{v.PageScanResult(), v.HeaderScanResult()} {
		if doc != nil && !doc.CanonicalURL.IsZero() {
			return doc.CanonicalURL
		}
	}
	return decorum.URL{}
}

// A LinkToVisit is a URL that a handler wants the crawl to visit.
type LinkToVisit struct {
	URL decorum.URL
	// stored with the URL and passed to its visit; at most storage.MaxCallbackDataBytes bytes
	CallbackData []byte
	Request      *storage.NonGETRequest // method, header and body; nil for GET

	isFeedOrFeedEntry bool // a feed lists the URL, or a page announces it as a feed
	isResource        bool // a page, or its style sheet, needs the URL to be shown
	isAlsoResource    bool // the page links to the URL, and needs it as well
}

func (l LinkToVisit) discoverySource() storage.Source {
	switch {
	case l.isFeedOrFeedEntry:
		return storage.SourceFeed
	case l.isResource:
		return storage.SourceResource
	}
	return storage.SourceLink
}

// A Handler reads a page: any answer to a page's request, whatever its status, except 304, which says
// that the page is unchanged. The crawl queues the links it returns before it acks the page, so a
// crash repeats a visit and loses no link. The error is the verdict on the page:
//
//	nil                    the page is done; a transient status (429, 5xx…) is retried
//	decorum.RetryAfter(d)  the page is visited again, not before d has passed
//	decorum.Drop(why)      the page is given up
//	any other error        the page is visited again after a back-off
//
// Retries end after Settings.MaxAttempts. When its context is done, because the crawl is halted or the
// lease has expired, a Handler returns the error of the context; the page is then visited again, and
// the attempt is not counted. The crawl catches a panic, logs it with the URL and the stack, counts it
// in Stats.Panics and gives the page up, because a retry would panic again.
//
// Many workers call a Handler at a time. To wrap one (timing, filtering, a transaction), write a
// function that takes a Handler and returns one.
type Handler func(context.Context, *Visit) ([]LinkToVisit, error)

// Hooks observe a crawl. A nil hook is skipped. Many workers call them at a time, and they must not
// block. With Settings.ReuseVisitMemory they must not use a Visit after they have returned. For a page
// whose content is withheld (Visit.ContentWithheld) they see what is recorded: the header and BodyLen,
// but not the content. frontier.Config has two more hooks, for URLs that are found.
type Hooks struct {
	VisitRefused    func(storage.Lease, decorum.Decision) // after the decision not to visit a leased URL now
	Visited         func(*Visit)                          // after every request, also for robots.txt and sitemaps
	RobotsFetched   func(gate.RecordFetchResult)          // after a visit to a robots.txt
	RetryScheduled  func(*Visit, FailureClass)            // when a failed page will be visited again
	Acked           func(storage.Ack)                     // after every lease, with what becomes of its URL
	SkippedInDryRun func(storage.Lease, gate.Clearance)   // for each page that Settings.DryRun skips
	// VisitAborted is called before VisitRefused, with what the connection of the visit has cost the host. It is
	// not called if that is nothing.
	VisitAborted func(storage.Lease, HostTraffic)
}

// A Recorder writes visits down. The crawl calls Record before it acks the visit, so a crash may
// repeat a record but never loses one. Many workers call it at a time. With Settings.ReuseVisitMemory it must
// not use the Visit after it has returned.
//
// A Recorder that cannot write for now, for example because the disk is full, waits until it can or
// ctx is done; its worker waits with it. Any other error stops the crawl.
type Recorder interface {
	Record(context.Context, *Visit) error
}

// takeFromTicket copies what the fetcher left in the ticket of v, besides the response and the
// error.
func (v *Visit) takeFromTicket(t Ticket) {
	v.Exchange, v.unsafeSendRecorded = t.data.rawExchange, t.isUnsafeSendRecorded()
	v.hostSlots, v.requestHeader, v.Connection = t.data.permit.HostSlots(), t.data.requestHeader, t.data.connUse
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
