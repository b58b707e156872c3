package api

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
)

// A Problem is an error as the API tells it (RFC 9457).
type Problem struct {
	Type   string `json:"type,omitempty"`   // empty: about:blank
	Title  string `json:"title"`            // the name of the status
	Status int    `json:"status"`           // the HTTP status of the answer
	Detail string `json:"detail,omitempty"` // what to do about it
	Err    error  `json:"-"`                // the cause, which no caller is told
	// PartialResult is what was queued all the same, of URLs that were offered.
	PartialResult *AddURLsResult `json:"taken,omitempty"`
}

// Error says what is wrong.
func (p *Problem) Error() string {
	return cmp.Or(p.Detail, p.Title)
}

// Unwrap returns the cause, if there is one.
func (p *Problem) Unwrap() error { return p.Err }

// NotFound is the problem of a name that nothing has.
func NotFound(format string, args ...any) *Problem {
	return newProblem(http.StatusNotFound, format, args...)
}

// Conflict is the problem of something that cannot be as things stand.
func Conflict(format string, args ...any) *Problem {
	return newProblem(http.StatusConflict, format, args...)
}

// Unavailable is the problem of something that will be there again.
func Unavailable(format string, args ...any) *Problem {
	return newProblem(http.StatusServiceUnavailable, format, args...)
}

// ErrDiskFull says that a project waits for room on the disk.
var ErrDiskFull = errors.New("no room on the disk")

// InvalidInput is the problem of input that makes no sense.
func InvalidInput(format string, args ...any) *Problem {
	return newProblem(http.StatusUnprocessableEntity, format, args...)
}

func newProblem(status int, format string, args ...any) *Problem {
	err := fmt.Errorf(format, args...)
	return &Problem{Title: http.StatusText(status), Status: status, Detail: err.Error(), Err: err}
}

// writeProblem answers with a problem. That its reader has gone is no news.
func writeProblem(w http.ResponseWriter, p *Problem) {
	switch p.Status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="decorum"`)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfterSeconds)
	}
	_ = writeJSON(w, p.Status, "application/problem+json", p)
}

// problemOf returns what a caller is told of an error. What is not a Problem is
// for the log: it may say more than a caller should know.
func problemOf(log *slog.Logger, r *http.Request, err error) *Problem {
	var (
		p        *Problem
		tooLarge *http.MaxBytesError
	)
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &tooLarge):
		return newProblem(http.StatusRequestEntityTooLarge, "the body is longer than the %d bytes that this takes", tooLarge.Limit)
	case r.Context().Err() != nil:
		return newProblem(statusClientClosedRequest, "the caller has gone")
	}
	log.Error("a call of the API failed", "method", r.Method, "path", r.URL.Path, "error", err)
	return internalProblem()
}

// statusClientClosedRequest is for the audit, of a caller who did not wait for the answer.
const statusClientClosedRequest = 499

func internalProblem() *Problem {
	return newProblem(http.StatusInternalServerError, "this should not be; the daemon's log says more")
}

// bodyProblem is the problem of a body that cannot be read.
func bodyProblem(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return err
	}
	return newProblem(http.StatusBadRequest, "the body cannot be read: %w", err)
}
