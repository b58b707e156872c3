package terminal

import (
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// A StatusLineWriter writes text to standard error, above a status line that is redrawn at the bottom.
// Its methods may be called at the same time.
type StatusLineWriter struct {
	mu         sync.Mutex // guards w and statusLine
	w          io.Writer
	fd         int          // the descriptor of the terminal; -1: w is not a terminal
	statusLine string       // the line that the terminal shows now; empty: none
	json       *slog.Logger // set by UseJSON; nil: Write writes text as it is
}

// The intervals at which a command shows its progress.
const (
	DrawInterval  = 500 * time.Millisecond // on a terminal, on the status line
	PrintInterval = 10 * time.Second       // elsewhere, on a separate line
)

// clearLineEscape moves the cursor to the beginning of the line, and clears the line.
const clearLineEscape = "\r\x1b[K"

// NewStatusLineWriter returns a StatusLineWriter without a status line.
func NewStatusLineWriter(w io.Writer) *StatusLineWriter {
	s := &StatusLineWriter{w: w, fd: -1}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.fd = int(f.Fd())
	}
	return s
}

// IsTerminal reports whether the text goes to a terminal.
func (s *StatusLineWriter) IsTerminal() bool { return s.fd >= 0 }

// UseJSON makes every line a record in JSON: from now on Write logs each text as one record, and there is
// no status line. Handlers that encode records themselves write to the writer that UseJSON returns. It
// must be called before other goroutines use s.
func (s *StatusLineWriter) UseJSON() io.Writer {
	s.fd, s.json = -1, slog.New(slog.NewJSONHandler(lineWriter{s}, nil))
	return lineWriter{s}
}

// A lineWriter writes encoded records to a StatusLineWriter.
type lineWriter struct{ to *StatusLineWriter }

func (w lineWriter) Write(p []byte) (int, error) { return w.to.writeLines(p) }

// Write writes p, which should consist of whole lines, above the status line.
func (s *StatusLineWriter) Write(p []byte) (int, error) {
	if s.json != nil {
		s.json.Info(strings.TrimRight(string(p), "\n"))
		return len(p), nil
	}
	return s.writeLines(p)
}

// writeLines writes p above the status line.
func (s *StatusLineWriter) writeLines(p []byte) (int, error) {
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

// DrawStatusLine replaces the status line by line, cut to the terminal's width; "" removes it. It ignores
// errors: a status line that cannot be drawn must not end a crawl.
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
