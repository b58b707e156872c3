package daemon

import (
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// A screen is standard error with a line at its foot that is drawn over and
// over. What is written to it scrolls by above that line.
type screen struct {
	mu   sync.Mutex
	w    io.Writer
	fd   int    // of the terminal; -1 if it is none
	foot string // as it stands there now
}

// wipe goes to the beginning of the terminal's line and wipes it.
const wipe = "\r\x1b[K"

func newScreen(w io.Writer) *screen {
	s := &screen{w: w, fd: -1}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.fd = int(f.Fd())
	}
	return s
}

// isTerminal reports whether somebody is looking.
func (s *screen) isTerminal() bool { return s.fd >= 0 }

// Write writes p, which should be whole lines.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.foot == "" {
		return s.w.Write(p)
	}
	if _, err := io.WriteString(s.w, wipe); err != nil {
		return 0, err
	}
	n, err := s.w.Write(p)
	if err == nil {
		_, err = io.WriteString(s.w, s.foot)
	}
	return n, err
}

// draw puts line at the foot, cut to the terminal's width; "" takes it away.
// The screen is for people, so a failure to draw is nobody's error.
func (s *screen) draw(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if width, _, err := term.GetSize(s.fd); err == nil && width > 0 && len(line) >= width {
		line = line[:width-1]
	}
	if line == "" && s.foot == "" {
		return
	}
	s.foot = strings.TrimSpace(line)
	_, _ = io.WriteString(s.w, wipe+s.foot)
}
