package terminal

import (
	"io"
)

// A StickyErrorWriter is standard output. It remembers the first write that failed, so that no
// command ends well whose answer was lost, whether or not it looked after each line;
// nothing is written after it.
type StickyErrorWriter struct {
	Underlying io.Writer
	WriteErr   error
}

func NewStickyErrorWriter(w io.Writer) *StickyErrorWriter { return &StickyErrorWriter{Underlying: w} }

// Write implements io.Writer.
func (p *StickyErrorWriter) Write(b []byte) (int, error) {
	if p.WriteErr != nil {
		return 0, p.WriteErr
	}
	n, err := p.Underlying.Write(b)
	p.WriteErr = err
	return n, err
}
