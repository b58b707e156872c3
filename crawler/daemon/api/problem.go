package api

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
)

// A Problem is an error in the form that the API answers with (RFC 9457).
type Problem struct {
	Type   string `json:"type,omitempty"`   // empty: about:blank
	Title  string `json:"title"`            // the name of the status
	Status int    `json:"status"`           // the HTTP status of the answer
	Detail string `json:"detail,omitempty"` // what is wrong, and what to do about it
	Err    error  `json:"-"`                // the cause; it is not sent to the caller
	// PartialResult says what a failed call that adds URLs had added before the error.
	PartialResult *AddURLsResult `json:"taken,omitempty"`
}

// Error returns the detail, or the title of a problem without one.
func (p *Problem) Error() string {
	return cmp.Or(p.Detail, p.Title)
}

// Unwrap returns the cause, if there is one.
func (p *Problem) Unwrap() error { return p.Err }

// NotFound returns the Problem (404) of an unknown name.
func NotFound(format string, args ...any) *Problem {
	return newProblem(http.StatusNotFound, format, args...)
}

// Conflict returns the Problem (409) of a call that the present state rules out.
func Conflict(format string, args ...any) *Problem {
	return newProblem(http.StatusConflict, format, args...)
}

// Unavailable returns the Problem (503) of something that is temporarily unavailable.
func Unavailable(format string, args ...any) *Problem {
	return newProblem(http.StatusServiceUnavailable, format, args...)
}

// ErrDiskFull is the error of a project that waits for free disk space. Daemon.CheckReady
// wraps it.
var ErrDiskFull = errors.New("no room on the disk")

// InvalidInput returns the Problem (422) of invalid input.
func InvalidInput(format string, args ...any) *Problem {
	return newProblem(http.StatusUnprocessableEntity, format, args...)
}

func newProblem(status int, format string, args ...any) *Problem {
	err := fmt.Errorf(format, args...)
	return &Problem{Title: http.StatusText(status), Status: status, Detail: err.Error(), Err: err}
}

// writeProblem answers with a problem. It ignores a failed write: the caller has gone.
func writeProblem(w http.ResponseWriter, p *Problem) {
	switch p.Status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="decorum"`)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfterSeconds)
	}
	_ = writeJSON(w, p.Status, "application/problem+json", p)
}

// problemOf returns the Problem to answer with after an error. An error that is not a Problem
// goes to the log alone, because it may say more than the caller should know.
func problemOf(log *slog.Logger, r *http.Request, err error) *Problem {
	var (
		p        *Problem
		tooLarge *http.MaxBytesError
	)
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &tooLarge):
		return newProblem(http.StatusRequestEntityTooLarge, "the body exceeds the limit of %d bytes", tooLarge.Limit)
	case r.Context().Err() != nil:
		return newProblem(statusClientClosedRequest, "the caller closed the connection")
	}
	log.Error("an API call failed", "method", r.Method, "path", r.URL.Path, "error", err)
	return internalProblem()
}

// statusClientClosedRequest is the status that the audit records for a caller who did not wait
// for the answer.
const statusClientClosedRequest = 499

func internalProblem() *Problem {
	return newProblem(http.StatusInternalServerError, "internal error: see the daemon's log")
}

// bodyProblem returns the problem of a body that cannot be read. An error about its length stays
// as it is: problemOf answers it with 413.
func bodyProblem(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return err
	}
	return newProblem(http.StatusBadRequest, "the body cannot be read: %w", err)
}
