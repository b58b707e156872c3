package daemon

import (
	"io"
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
