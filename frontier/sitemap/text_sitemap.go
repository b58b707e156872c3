package sitemap

import (
	"bytes"
	"errors"
	"io"
)

// readTextSitemap reads a list of URLs, one a line. They must be complete: anything
// else may be any text.
func readTextSitemap(in *input, s *entryEmitter) error {
	var line []byte
	for {
		n := in.line
		b, complete, err := in.readChunkUntil('\n')
		line = append(line, b[:min(len(b), maxTextLen-len(line))]...)
		if complete || errors.Is(err, io.EOF) {
			if emitErr := s.emitLine(n, line); emitErr != nil {
				return emitErr
			}
			line = line[:0]
		}
		switch {
		case errors.Is(err, io.EOF) && s.urlCount == 0:
			return ErrNotSitemap
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// emitLine hands on the n-th line.
func (s *entryEmitter) emitLine(n int, line []byte) error {
	text := bytes.TrimSpace(line)
	switch {
	case len(text) == 0:
		return nil
	case len(line) == maxTextLen:
		s.reportError(n, locationField, text, ErrLimit)
		return nil
	}
	return s.emit(&partialEntry{fallbackLoc: text, line: n, priority: DefaultPriority}, false)
}
