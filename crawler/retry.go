package crawler

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// A Failure is a class of reasons why a page could not be had, or was not
// wanted as it came. The class says how often the page is asked for.
type Failure uint8

// Failures.
const (
	// Throttled is 429 and 503: the server asks for less, of this page as of
	// all others. Retry-After and back-off protect the host; the page is not to
	// blame, and is asked for many times.
	Throttled Failure = iota
	// Passing is what may be over the next time: other 5xx, 408 and 425, and
	// answers that did not come whole: timeouts, resets, cut bodies.
	Passing
	// Unreachable is what seldom passes: a name that DNS does not know, a
	// connection that is refused, TLS that fails, a certificate that is not good.
	Unreachable
	// Malformed is an answer that is no HTTP, or a body that cannot be decoded.
	Malformed
	// Unread is an answer that the handler asks to have again.
	Unread
	Failures = iota // how many there are
)

// retries says how often a page is asked for that fails: Settings.Attempts
// times, but not less than least and not more than most. The wait before each
// is the back-off of Policy.RetryIn, or what a handler asks for; the host's own
// rest comes on top. Attempts are counted over all classes; the class of the
// last failure says whether there is another.
var retries = [Failures]struct {
	name                     string
	minAttempts, maxAttempts int
}{
	Throttled:   {"throttled", 10, math.MaxInt},
	Passing:     {"passing", 1, math.MaxInt},
	Unreachable: {"unreachable", 1, 2},
	Malformed:   {"malformed", 1, 2},
	Unread:      {"unread", 1, math.MaxInt},
}

// String returns the name of the class, "unknown" for what is none.
func (f Failure) String() string {
	if f < Failures {
		return retries[f].name
	}
	return "unknown"
}

// attempts returns how often a page is asked for that fails so.
func (f Failure) attempts(usual int) int {
	return min(max(usual, retries[f].minAttempts), retries[f].maxAttempts)
}

// failure returns why v has no answer of the page itself, and false if it has.
func failure(v *Visit) (Failure, bool) {
	switch {
	case v.Response == nil:
		return failureOf(v.Err), true
	case throttles(v.Status()):
		return Throttled, true
	}
	return Passing, passing(v.Status())
}

// passing reports whether a status speaks of the moment and not of the page.
func passing(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// absent reports whether a status says that nothing is there.
func absent(status int) bool { return status == http.StatusNotFound || status == http.StatusGone }

// throttles reports whether a status asks for less.
func throttles(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// failureOf returns the class of an error that left no answer.
func failureOf(err error) Failure {
	switch {
	case noSuchHost(err), errors.Is(err, syscall.ECONNREFUSED), isTLS(err):
		return Unreachable
	case isMalformed(err):
		return Malformed
	}
	return Passing
}

// isTLS reports whether err is of a TLS handshake that no retry mends.
func isTLS(err error) bool {
	var (
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		refused     *net.OpError // how crypto/tls tells an alert of the server
	)
	return errors.As(err, &certificate) || errors.As(err, &record) || errors.As(err, &alert) ||
		errors.As(err, &refused) && refused.Op == "remote error" || errors.Is(err, http.ErrSchemeMismatch)
}

// isMalformed reports whether err is of an answer that cannot be read. For some
// of that net/http has no type, only its words.
func isMalformed(err error) bool {
	return errors.Is(err, decorum.Malformed) || err != nil && strings.Contains(err.Error(), "malformed")
}

// unreachable reports whether v did not reach its server, for a reason that
// seldom passes.
func unreachable(v *Visit) bool {
	return v.Response == nil && !v.unsent() && failureOf(v.Err) == Unreachable
}

// noSuchHost reports whether the name of the host is not known to DNS: a
// foreground crawl need not wait for it to appear.
func noSuchHost(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// retry asks for the page of v again after d, until it has failed too often. What
// must not be sent twice is not asked for again.
func (c *Crawler) retry(v *Visit, f Failure, d time.Duration) storage.Ack {
	c.tally.failures[f].Add(1)
	if v.marked || v.Lease.Attempt+1 >= f.attempts(c.Settings.Attempts) {
		return c.giveUp(v)
	}
	c.tally.retries.Add(1)
	if c.Hooks.Retried != nil {
		c.Hooks.Retried(c.shown(v), f)
	}
	return storage.Ack{Outcome: storage.Later, At: v.End.Add(d)}
}

// giveUp ends the attempts at a page. One that was there before rests until
// its next revisit.
func (c *Crawler) giveUp(v *Visit) storage.Ack {
	c.tally.failed.Add(1)
	if page := v.Lease.Page; page != nil && c.Settings.Revisit.Wanted() {
		return resting(v, *page, c.Settings.Revisit.Again(*page))
	}
	return storage.Ack{Outcome: storage.Gone}
}

// decideOutcome turns a page's answer and the handler's verdict into an outcome.
func (c *Crawler) decideOutcome(ctx context.Context, v *Visit, verdict error) (storage.Ack, error) {
	var wait decorum.Retry
	switch {
	case errors.Is(verdict, decorum.Dropped), errors.Is(verdict, decorum.Panicked):
		return storage.Ack{Outcome: storage.Gone}, nil
	case errors.As(verdict, &wait):
		return c.retry(v, Unread, time.Duration(wait)), nil
	case verdict != nil:
		return c.retry(v, Unread, c.Policy.RetryIn(v.URL().String(), v.Lease.Attempt+1)), nil
	}
	ack, failed := c.failed(v)
	if found, ok := c.missing(v); ok && !failed {
		return storage.Ack{Outcome: storage.Again, Lease: storage.Lease{Entry: storage.Entry{Found: found, AsFound: true}}}, nil
	}
	if absent(v.Status()) || unreachable(v) && ack.Outcome == storage.Gone {
		if err := c.unfold(ctx, v); err != nil {
			return storage.Ack{Outcome: storage.Again}, err
		}
	}
	if failed {
		return ack, nil
	}
	return c.settle(ctx, v)
}

// failed returns what becomes of a page or sitemap that could not be had, and
// false if it could. What we refuse to ask for ourselves is not asked for again.
func (c *Crawler) failed(v *Visit) (storage.Ack, bool) {
	if v.unsent() {
		return c.giveUp(v), true
	}
	f, failed := failure(v)
	if !failed {
		return storage.Ack{}, false
	}
	return c.retry(v, f, c.Policy.RetryIn(v.URL().String(), v.Lease.Attempt+1)), true
}
