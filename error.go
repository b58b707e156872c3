package decorum

import (
	"strings"
	"time"
)

// An ErrorKind is the class of an error. It is itself an error, so
// errors.Is(err, decorum.Disallowed) asks any error of this module.
type ErrorKind string

// Error returns the name of the kind.
func (k ErrorKind) Error() string { return string(k) }

// The kinds of errors.
const (
	Invalid      ErrorKind = "invalid"                     // what is no URL, or a setting that makes no sense
	OutOfScope   ErrorKind = "out of scope"                // a URL that does not belong to the crawl
	Disallowed   ErrorKind = "disallowed by robots.txt"    // the rules say no: see gate.Refusal
	Pending      ErrorKind = "robots.txt is being fetched" // nobody knows yet: ask again
	Unreachable  ErrorKind = "unreachable"                 // no answer, or none that is whole
	Malformed    ErrorKind = "malformed answer"            // an answer that HTTP does not know, or that broke a limit
	NotDue       ErrorKind = "not due"                     // the host, or what it shares, has to rest: ask again
	Unticketed   ErrorKind = "request without a ticket"    // sent without the two proofs, or not as they say; it was refused
	Forbidden    ErrorKind = "forbidden address"           // not public, and so never connected to
	LocalFailure ErrorKind = "failed on this machine"      // the crawl itself lacked something; it says nothing of the host: ask again
	Dropped      ErrorKind = "dropped"                     // given up by its handler
	Panicked     ErrorKind = "callback panicked"           // by a callback, whose stack is in the log
	// InDoubt is of a request that must not be made twice (RFC 9110, section
	// 9.2.2): it was sent, and no whole answer came.
	InDoubt ErrorKind = "sent, and its outcome is not known"
)

// An Error says what was being done, to which URL, and why it failed.
type Error struct {
	Op   string    // what was being done: "parse", "fetch"
	URL  string    // to what; may be empty
	Kind ErrorKind // the class of what went wrong; errors.Is finds it
	Err  error     // the cause, if something else is to blame
}

// Error returns op, URL, kind and cause, as far as they are known.
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

// Unwrap lets errors.Is and errors.As see the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// RetryAfter is a handler's verdict: visit the URL again, not before the given
// time has passed.
func RetryAfter(d time.Duration) error { return HandlerRetryError(d) }

// HandlerRetryError is the error that RetryAfter returns.
type HandlerRetryError time.Duration

// Error says when.
func (r HandlerRetryError) Error() string { return "retry after " + time.Duration(r).String() }

// Drop is a handler's verdict: give the URL up, for the reason given.
func Drop(reason string) error { return &Error{Op: "handle", Kind: Dropped, Err: textError(reason)} }

type textError string

func (r textError) Error() string { return string(r) }
