package daemon

import (
	"errors"
	"fmt"
	"io"
)

// Exit codes. Scripts rely on them.
const (
	ExitDone    = 0 // all is well
	ExitFailed  = 1 // something went wrong
	ExitUsage   = 2 // wrong usage or configuration: nothing was sent
	ExitNo      = 3 // a check says no
	ExitStopped = 4 // stopped by a limit or a signal; --resume goes on
)

// An exit is an error that knows its exit code.
type exit struct {
	code int
	err  error // nil: everything has been said
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// usage returns an error of wrong usage or configuration.
func usage(format string, args ...any) error {
	return &exit{ExitUsage, fmt.Errorf(format, args...)}
}

// report tells what went wrong, and returns the exit code for it.
func report(w io.Writer, err error) int {
	if err == nil {
		return ExitDone
	}
	if text := detailOf(err); text != "" {
		fmt.Fprintln(w, "decorum:", text)
	}
	var e *exit
	if errors.As(err, &e) {
		return e.code
	}
	return ExitFailed
}
