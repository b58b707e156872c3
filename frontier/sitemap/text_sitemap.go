package sitemap

import (
	"bytes"
	"errors"
	"io"
)

// readText reads a list of URLs, one a line. They must be complete: anything
// else may be any text.
func readText(in *input, s *sink) error {
	var line []byte
	for {
		n := in.line
		b, whole, err := in.chunk('\n')
		line = append(line, b[:min(len(b), maxValue-len(line))]...)
		if whole || errors.Is(err, io.EOF) {
			if stop := s.emitLine(n, line); stop != nil {
				return stop
			}
			line = line[:0]
		}
		switch {
		case errors.Is(err, io.EOF) && s.found == 0:
			return ErrNotSitemap
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// emitLine hands on the n-th line.
func (s *sink) emitLine(n int, line []byte) error {
	text := bytes.TrimSpace(line)
	switch {
	case len(text) == 0:
		return nil
	case len(line) == maxValue:
		s.flaw(n, location, text, ErrLimit)
		return nil
	}
	return s.put(&draft{spare: text, line: n, priority: DefaultPriority}, false)
}
