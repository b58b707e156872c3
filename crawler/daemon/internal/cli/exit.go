package cli

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

// An exitError is an error that knows its exit code.
type exitError struct {
	Code int
	Err  error // nil: everything has been said
}

func (e *exitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *exitError) Unwrap() error { return e.Err }

// exitCode returns the exit code for the error that a command ended with.
func exitCode(err error) int {
	exit, wrongUsage, wrongFile := (*exitError)(nil), (*usage.Error)(nil), (*project.Error)(nil)
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

// printError tells what went wrong, and returns the exit code for it.
func printError(w io.Writer, err error) int {
	if text := project.DetailedErrorText(err); text != "" {
		fmt.Fprintln(w, "decorum:", text)
	}
	return exitCode(err)
}

// withWriteError returns how a command ended that by itself ended with err: where something
// of what it printed was lost, neither well nor with the verdict of a check. That
// nobody reads on, as after head, wants no words.
func withWriteError(p *terminal.StickyErrorWriter, err error) error {
	if p.WriteErr == nil {
		return err
	}
	var e *exitError
	switch {
	case errors.As(err, &e) && e.Code != ExitCheckFailed, exitCode(err) == ExitUsage: // it says why, and that all is not well
		return err
	case errors.Is(p.WriteErr, syscall.EPIPE):
		return &exitError{Code: ExitFailed}
	case errors.Is(err, p.WriteErr):
		return err
	case err == nil || err.Error() == "": // a verdict says nothing
		return &exitError{Code: ExitFailed, Err: p.WriteErr}
	}
	return &exitError{Code: ExitFailed, Err: errors.Join(err, p.WriteErr)}
}
