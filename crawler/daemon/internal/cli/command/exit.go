package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"syscall"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// Exit codes of decorum. Scripts rely on them.
const (
	ExitDone        = 0 // the command succeeded; a limit of pages or bytes may have ended the crawl
	ExitFailed      = 1 // the command failed
	ExitUsage       = 2 // wrong usage or configuration; no request was sent
	ExitCheckFailed = 3 // a check failed, such as robots check on a disallowed URL
	ExitStopped     = 4 // stopped by a signal, a limit of time, or the reader of a crawl's output; --resume continues
)

// An ExitError is an error with an exit code.
type ExitError struct {
	Code int
	Err  error // nil: the command prints nothing
}

// Error returns the message of e.Err, or "" if e.Err is nil.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap returns e.Err.
func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode returns the exit code for err, the error that a command returned: ExitDone for nil, the
// code of an ExitError, ExitUsage for errors of usage and of project files, else ExitFailed.
func ExitCode(err error) int {
	exit, wrongUsage, wrongFile := (*ExitError)(nil), (*usage.Error)(nil), (*project.Error)(nil)
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &wrongUsage), errors.As(err, &wrongFile):
		return ExitUsage
	}
	return ExitFailed
}

// PrintError writes the message of err to w, unless it is empty, and returns the exit code for err.
func PrintError(w io.Writer, err error) int {
	if text := project.DetailedErrorText(err); text != "" {
		fmt.Fprintln(w, "decorum:", text)
	}
	return ExitCode(err)
}

// PrintError writes the message of err to e.Stderr, or as a record with the field exit_code, unless it is
// empty, and returns the exit code for err.
func (e *Env) PrintError(err error) int {
	text := project.DetailedErrorText(err)
	if e.JSONMessages == nil || text == "" {
		return PrintError(e.Stderr, err)
	}
	code, level := ExitCode(err), slog.LevelError
	if code == ExitStopped {
		level = slog.LevelInfo
	}
	e.JSONMessages.Log(context.Background(), level, text, "exit_code", code)
	return code
}

// WithWriteError returns the error of a command that returned err and wrote its output to p. If a
// write failed, the command must not report success or the result of a check: the error then has
// ExitFailed. It has no message if the reader closed the pipe, as head does. Usage errors, and errors
// that already carry another exit code, are returned unchanged.
func WithWriteError(p *terminal.StickyErrorWriter, err error) error {
	if p.WriteErr == nil {
		return err
	}
	var e *ExitError
	switch {
	// err already is a failure with a message.
	case errors.As(err, &e) && e.Code != ExitCheckFailed, ExitCode(err) == ExitUsage:
		return err
	case errors.Is(p.WriteErr, syscall.EPIPE):
		return &ExitError{Code: ExitFailed}
	case errors.Is(err, p.WriteErr):
		return err
	case err == nil || err.Error() == "": // success, or the result of a check
		return &ExitError{Code: ExitFailed, Err: p.WriteErr}
	}
	return &ExitError{Code: ExitFailed, Err: errors.Join(err, p.WriteErr)}
}
