package daemon

import (
	"errors"
	"fmt"
	"io"
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
	code int
	err  error // nil: everything has been said
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageErrorf returns an error of wrong usage or configuration.
func usageErrorf(format string, args ...any) error {
	return &exitError{ExitUsage, fmt.Errorf(format, args...)}
}

// printError tells what went wrong, and returns the exit code for it.
func printError(w io.Writer, err error) int {
	if err == nil {
		return ExitDone
	}
	if text := terminalErrorText(err); text != "" {
		fmt.Fprintln(w, "decorum:", text)
	}
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return ExitFailed
}
