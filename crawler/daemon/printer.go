package daemon

import (
	"errors"
	"io"
	"syscall"
)

// A stickyErrorWriter is standard output. It remembers the first write that failed, so that no
// command ends well whose answer was lost, whether or not it looked after each line;
// nothing is written after it.
type stickyErrorWriter struct {
	w        io.Writer
	writeErr error
}

func newStickyErrorWriter(w io.Writer) *stickyErrorWriter { return &stickyErrorWriter{w: w} }

// Write implements io.Writer.
func (p *stickyErrorWriter) Write(b []byte) (int, error) {
	if p.writeErr != nil {
		return 0, p.writeErr
	}
	n, err := p.w.Write(b)
	p.writeErr = err
	return n, err
}

// withWriteError returns how a command ended that by itself ended with err: where something
// of what it printed was lost, neither well nor with the verdict of a check. That
// nobody reads on, as after head, wants no words.
func (p *stickyErrorWriter) withWriteError(err error) error {
	if p.writeErr == nil {
		return err
	}
	var e *exitError
	switch {
	case errors.As(err, &e) && e.code != ExitCheckFailed, exitCode(err) == ExitUsage: // it says why, and that all is not well
		return err
	case errors.Is(p.writeErr, syscall.EPIPE):
		return &exitError{code: ExitFailed}
	case errors.Is(err, p.writeErr):
		return err
	case err == nil || err.Error() == "": // a verdict says nothing
		return &exitError{ExitFailed, p.writeErr}
	}
	return &exitError{ExitFailed, errors.Join(err, p.writeErr)}
}
