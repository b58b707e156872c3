package terminal

import (
	"io"
)

// A StickyErrorWriter writes to standard output until a write fails. It remembers that error and writes
// nothing afterwards. A command that does not check each write can thus still fail if its output was
// lost. It is not safe for concurrent use.
type StickyErrorWriter struct {
	Underlying io.Writer
	WriteErr   error // of the first failed write; nil: none has failed
}

// NewStickyErrorWriter returns a StickyErrorWriter that writes to w.
func NewStickyErrorWriter(w io.Writer) *StickyErrorWriter { return &StickyErrorWriter{Underlying: w} }

// Write implements io.Writer. After a failed write it returns the error of that write.
func (p *StickyErrorWriter) Write(b []byte) (int, error) {
	if p.WriteErr != nil {
		return 0, p.WriteErr
	}
	n, err := p.Underlying.Write(b)
	p.WriteErr = err
	return n, err
}
