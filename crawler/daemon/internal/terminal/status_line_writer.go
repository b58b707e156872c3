package terminal

import (
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// A StatusLineWriter is standard error with a line at its foot that is drawn over and
// over. What is written to it scrolls by above that line.
type StatusLineWriter struct {
	mu         sync.Mutex
	w          io.Writer
	fd         int    // of the terminal; -1 if it is none
	statusLine string // as it stands there now
}

// How often a command shows its progress.
const (
	DrawInterval  = 500 * time.Millisecond // on a terminal, on the status line
	PrintInterval = 10 * time.Second       // elsewhere, on a line of its own
)

// clearLineEscape goes to the beginning of the terminal's line and wipes it.
const clearLineEscape = "\r\x1b[K"

func NewStatusLineWriter(w io.Writer) *StatusLineWriter {
	s := &StatusLineWriter{w: w, fd: -1}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.fd = int(f.Fd())
	}
	return s
}

// IsTerminal reports whether somebody is looking.
func (s *StatusLineWriter) IsTerminal() bool { return s.fd >= 0 }

// Write writes p, which should be whole lines.
func (s *StatusLineWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.statusLine == "" {
		return s.w.Write(p)
	}
	if _, err := io.WriteString(s.w, clearLineEscape); err != nil {
		return 0, err
	}
	n, err := s.w.Write(p)
	if err == nil {
		_, err = io.WriteString(s.w, s.statusLine)
	}
	return n, err
}

// DrawStatusLine puts line at the foot, cut to the terminal's width; "" takes it away.
// The screen is for people, so a failure to draw is nobody's error.
func (s *StatusLineWriter) DrawStatusLine(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if width, _, err := term.GetSize(s.fd); err == nil && width > 0 && len(line) >= width {
		line = line[:width-1]
	}
	if line == "" && s.statusLine == "" {
		return
	}
	s.statusLine = strings.TrimSpace(line)
	_, _ = io.WriteString(s.w, clearLineEscape+s.statusLine)
}
