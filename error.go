package decorum

import (
	"strings"
	"time"
)

// An ErrorKind is the class of an error. It is itself an error, so that
// errors.Is(err, decorum.Disallowed) works with every error of this module.
type ErrorKind string

// Error returns the name of the kind.
func (k ErrorKind) Error() string { return string(k) }

// The kinds of errors.
const (
	// Invalid: a string that is not a URL to crawl, or an invalid setting.
	Invalid ErrorKind = "invalid"
	// OutOfScope: the URL does not belong to the crawl.
	OutOfScope ErrorKind = "out of scope"
	// Disallowed: robots.txt or tdmrep.json disallows the URL. A *gate.Refusal among the causes names
	// the rule.
	Disallowed ErrorKind = "disallowed by robots.txt"
	// Pending: the rules are not known yet, because robots.txt is being fetched. Try again later.
	Pending ErrorKind = "robots.txt is being fetched"
	// Unreachable: the server did not answer, or its answer is incomplete.
	Unreachable ErrorKind = "unreachable"
	// Malformed: the answer is not valid HTTP, or exceeds a limit.
	Malformed ErrorKind = "malformed answer"
	// NotDue: the host, or something that it shares with other hosts, has to rest. Try again later.
	NotDue ErrorKind = "not due"
	// Unticketed: the transport refused a request that had no ticket or did not match its ticket. A
	// ticket consists of two proofs: a clearance (robots.txt allows the URL) and a permit (the host
	// is due).
	Unticketed ErrorKind = "request without a ticket"
	// Forbidden: the address is not public, and the crawl does not connect to it.
	Forbidden ErrorKind = "forbidden address"
	// LocalFailure: this machine lacked a resource or a connection. It says nothing about the host.
	// Try again later.
	LocalFailure ErrorKind = "failed on this machine"
	// Dropped: the handler gave the URL up.
	Dropped ErrorKind = "dropped"
	// Panicked: a callback panicked. The log has its stack.
	Panicked ErrorKind = "callback panicked"
	// InDoubt: a request that must not be repeated (RFC 9110, section 9.2.2) was sent, and no
	// complete answer arrived.
	InDoubt ErrorKind = "sent, and its outcome is not known"
)

// An Error reports which operation on which URL failed, and why.
type Error struct {
	Op   string    // the operation that failed: "parse", "fetch"
	URL  string    // the URL as text, because it may be invalid; may be empty
	Kind ErrorKind // the class of the failure; errors.Is finds it
	Err  error     // the cause; nil if Kind says it all
}

// Error returns operation, URL, kind and cause, without those that are empty.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.URL != "" {
		b.WriteString(" " + e.URL)
	}
	b.WriteString(": " + string(e.Kind))
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the kind and the cause, so that errors.Is and errors.As find both.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// RetryAfter returns an error by which a handler has the URL visited again, after d at the earliest.
func RetryAfter(d time.Duration) error { return HandlerRetryError(d) }

// HandlerRetryError is the error that RetryAfter returns.
type HandlerRetryError time.Duration

// Error returns "retry after" and the duration.
func (r HandlerRetryError) Error() string { return "retry after " + time.Duration(r).String() }

// Drop returns an error of kind Dropped, by which a handler gives the URL up for the given reason.
func Drop(reason string) error { return &Error{Op: "handle", Kind: Dropped, Err: textError(reason)} }

// A textError is an error that is its own text, and can be a constant.
type textError string

func (r textError) Error() string { return string(r) }
