package api

import (
	"cmp"
	"errors"
	"fmt"
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
