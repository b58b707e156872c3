package daemon

import (
	"errors"
	"io"
	"syscall"
)

// A printer is standard output. It remembers the first write that failed, so that no
// command ends well whose answer was lost, whether or not it looked after each line;
// nothing is written after it.
type printer struct {
	w      io.Writer
	failed error
}

func newPrinter(w io.Writer) *printer { return &printer{w: w} }

// Write implements io.Writer.
func (p *printer) Write(b []byte) (int, error) {
	if p.failed != nil {
		return 0, p.failed
	}
	n, err := p.w.Write(b)
	p.failed = err
	return n, err
}

// heeded returns how a command ended that by itself ended with err: where something
// of what it printed was lost, neither well nor with the verdict of a check. That
// nobody reads on, as after head, wants no words.
func (p *printer) heeded(err error) error {
	if p.failed == nil {
		return err
	}
	var e *exit
	switch {
	case errors.As(err, &e) && e.code != ExitNo: // it says why, and that all is not well
		return err
	case errors.Is(p.failed, syscall.EPIPE):
		return &exit{code: ExitFailed}
	case errors.Is(err, p.failed):
		return err
	case err == nil || err.Error() == "": // a verdict says nothing
		return &exit{ExitFailed, p.failed}
	}
	return &exit{ExitFailed, errors.Join(err, p.failed)}
}
