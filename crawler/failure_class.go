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

// A FailureClass says why a visit to a page or sitemap failed. It decides how many attempts follow.
type FailureClass uint8

// The classes of failures.
const (
	// Throttled is 429 and 503: the server asks for fewer requests. Retry-After and back-off
	// protect the host; the page is not at fault, and gets at least 10 attempts.
	Throttled FailureClass = iota
	// Transient is a failure that may be over next time: other 5xx, 408 and 425, and incomplete
	// answers: time-outs, resets, cut bodies.
	Transient
	// Unreachable is a failure that seldom passes: an unknown host name, a refused connection, a
	// failed TLS handshake, an invalid certificate. A page gets at most 2 attempts.
	Unreachable
	// Malformed is an answer that is not HTTP, or a body that cannot be decoded. A page gets at
	// most 2 attempts.
	Malformed
	// RetryRequested is an answer whose handler wants another visit.
	RetryRequested
	FailureClassCount = iota // number of classes
)

// retryLimits bounds the attempts at a failing page: Settings.MaxAttempts, but at least minAttempts
// and at most maxAttempts. The wait before each attempt is Policy.RetryDelay, or what a handler
// asks for; the host's own rest is added. Attempts are counted over all classes, and the class of
// the last failure decides whether another follows.
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

// String returns the name of the class, "unknown" for an invalid one.
func (f FailureClass) String() string {
	if f < FailureClassCount {
		return retryLimits[f].name
	}
	return "unknown"
}

// maxAttempts returns how many attempts a page gets that fails in this way, where configured is
// Settings.MaxAttempts.
func (f FailureClass) maxAttempts(configured int) int {
	return min(max(configured, retryLimits[f].minAttempts), retryLimits[f].maxAttempts)
}

// visitFailureClass returns why v has no answer about the page itself. It returns false if it has
// one.
func visitFailureClass(v *Visit) (FailureClass, bool) {
	switch {
	case v.Response == nil:
		return errorFailureClass(v.Err), true
	case v.Status() == http.StatusTooManyRequests, v.Status() == http.StatusServiceUnavailable:
		return Throttled, true
	}
	return Transient, isTransientStatus(v.Status())
}

// isTransientStatus reports whether a status describes the server's current state, not the page.
func isTransientStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// isNotFound reports whether a status says that the page does not exist.
func isNotFound(status int) bool { return status == http.StatusNotFound || status == http.StatusGone }

// errorFailureClass returns the class of a visit that failed with err and without an answer.
func errorFailureClass(err error) FailureClass {
	switch {
	case isHostNotFound(err), errors.Is(err, syscall.ECONNREFUSED), isTLSError(err):
		return Unreachable
	case isMalformedError(err):
		return Malformed
	}
	return Transient
}

// isTLSError reports whether err is a failed TLS handshake that a retry would not fix.
func isTLSError(err error) bool {
	op, isOp := errors.AsType[*net.OpError](err)
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError)) ||
		errors.As(err, new(tls.AlertError)) || errors.Is(err, http.ErrSchemeMismatch) ||
		isOp && op.Op == "remote error" // crypto/tls reports an alert of the server in this way
}

// isMalformedError reports whether err means that the answer cannot be read. For some of these
// errors net/http has no type, only a text.
func isMalformedError(err error) bool {
	return errors.Is(err, decorum.Malformed) || err != nil && strings.Contains(err.Error(), "malformed")
}

// isUnreachable reports whether v did not reach its server, for a reason that seldom passes.
func isUnreachable(v *Visit) bool {
	return v.Response == nil && !v.wasNeverSent() && errorFailureClass(v.Err) == Unreachable
}

// isHostNotFound reports whether DNS does not know the host name. A crawl that runs until its queue
// is empty need not wait for the name to appear.
func isHostNotFound(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}
