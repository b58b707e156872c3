package command

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// Exit codes. Scripts rely on them.
const (
	ExitDone        = 0 // all is well
	ExitFailed      = 1 // something went wrong
	ExitUsage       = 2 // wrong usage or configuration: nothing was sent
	ExitCheckFailed = 3 // a check says no
	ExitStopped     = 4 // stopped by a limit or a signal; --resume goes on
)

// An ExitError is an error that knows its exit code.
type ExitError struct {
	Code int
	Err  error // nil: everything has been said
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode returns the exit code for the error that a command ended with.
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

// PrintError tells what went wrong, and returns the exit code for it.
func PrintError(w io.Writer, err error) int {
	if text := project.DetailedErrorText(err); text != "" {
		fmt.Fprintln(w, "decorum:", text)
	}
	return ExitCode(err)
}

// WithWriteError returns how a command ended that by itself ended with err: where something
// of what it printed was lost, neither well nor with the verdict of a check. That
// nobody reads on, as after head, wants no words.
func WithWriteError(p *terminal.StickyErrorWriter, err error) error {
	if p.WriteErr == nil {
		return err
	}
	var e *ExitError
	switch {
	case errors.As(err, &e) && e.Code != ExitCheckFailed, ExitCode(err) == ExitUsage: // it says why, and that all is not well
		return err
	case errors.Is(p.WriteErr, syscall.EPIPE):
		return &ExitError{Code: ExitFailed}
	case errors.Is(err, p.WriteErr):
		return err
	case err == nil || err.Error() == "": // a verdict says nothing
		return &ExitError{Code: ExitFailed, Err: p.WriteErr}
	}
	return &ExitError{Code: ExitFailed, Err: errors.Join(err, p.WriteErr)}
}
