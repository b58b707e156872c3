package crawler

import (
	"crypto/tls"
	"errors"
	"math"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/decorum-crawler/decorum"
)

// A FailureClass is a class of reasons why a page could not be had, or was not
// wanted as it came. The class says how often the page is asked for.
type FailureClass uint8

// Failures.
const (
	// Throttled is 429 and 503: the server asks for less, of this page as of
	// all others. Retry-After and back-off protect the host; the page is not to
	// blame, and is asked for many times.
	Throttled FailureClass = iota
	// Transient is what may be over the next time: other 5xx, 408 and 425, and
	// answers that did not come whole: timeouts, resets, cut bodies.
	Transient
	// Unreachable is what seldom passes: a name that DNS does not know, a
	// connection that is refused, TLS that fails, a certificate that is not good.
	Unreachable
	// Malformed is an answer that is no HTTP, or a body that cannot be decoded.
	Malformed
	// RetryRequested is an answer that the handler asks to have again.
	RetryRequested
	FailureClassCount = iota // how many there are
)

// retryLimits says how often a page is asked for that fails: Settings.MaxAttempts
// times, but not less than least and not more than most. The wait before each
// is the back-off of Policy.RetryDelay, or what a handler asks for; the host's own
// rest comes on top. Attempts are counted over all classes; the class of the
// last failure says whether there is another.
var retryLimits = [FailureClassCount]struct {
	name                     string
	minAttempts, maxAttempts int
}{
	Throttled:      {"throttled", 10, math.MaxInt},
	Transient:      {"passing", 1, math.MaxInt},
	Unreachable:    {"unreachable", 1, 2},
	Malformed:      {"malformed", 1, 2},
	RetryRequested: {"unread", 1, math.MaxInt},
}

// String returns the name of the class, "unknown" for what is none.
func (f FailureClass) String() string {
	if f < FailureClassCount {
		return retryLimits[f].name
	}
	return "unknown"
}

// maxAttempts returns how often a page is asked for that fails so.
func (f FailureClass) maxAttempts(configured int) int {
	return min(max(configured, retryLimits[f].minAttempts), retryLimits[f].maxAttempts)
}

// visitFailureClass returns why v has no answer of the page itself, and false if it has.
func visitFailureClass(v *Visit) (FailureClass, bool) {
	switch {
	case v.Response == nil:
		return errorFailureClass(v.Err), true
	case v.Status() == http.StatusTooManyRequests, v.Status() == http.StatusServiceUnavailable:
		return Throttled, true
	}
	return Transient, isTransientStatus(v.Status())
}

// isTransientStatus reports whether a status speaks of the moment and not of the page.
func isTransientStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// isNotFound reports whether a status says that nothing is there.
func isNotFound(status int) bool { return status == http.StatusNotFound || status == http.StatusGone }

// errorFailureClass returns the class of an error that left no answer.
func errorFailureClass(err error) FailureClass {
	switch {
	case isHostNotFound(err), errors.Is(err, syscall.ECONNREFUSED), isTLSError(err):
		return Unreachable
	case isMalformedError(err):
		return Malformed
	}
	return Transient
}

// isTLSError reports whether err is of a TLS handshake that no retry mends.
func isTLSError(err error) bool {
	op, isOp := errors.AsType[*net.OpError](err)
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError)) ||
		errors.As(err, new(tls.AlertError)) || errors.Is(err, http.ErrSchemeMismatch) ||
		isOp && op.Op == "remote error" // how crypto/tls tells an alert of the server
}

// isMalformedError reports whether err is of an answer that cannot be read. For some
// of that net/http has no type, only its words.
func isMalformedError(err error) bool {
	return errors.Is(err, decorum.Malformed) || err != nil && strings.Contains(err.Error(), "malformed")
}

// isUnreachable reports whether v did not reach its server, for a reason that
// seldom passes.
func isUnreachable(v *Visit) bool {
	return v.Response == nil && !v.wasNeverSent() && errorFailureClass(v.Err) == Unreachable
}

// isHostNotFound reports whether the name of the host is not known to DNS: a
// foreground crawl need not wait for it to appear.
func isHostNotFound(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}
