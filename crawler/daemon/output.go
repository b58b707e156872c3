package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/decorum-crawler/decorum/crawler"
)

// An output is the crawl's Recorder: one line of JSON a visit. Each line is
// written by one call as soon as the visit is over, so that a process that is
// killed leaves whole lines behind, and every visit whose ack is durable has
// its line. It costs a few microseconds a page.
type output struct {
	mu     sync.Mutex
	w      io.Writer
	close  func() error
	token  string
	bodies bodies       // empty: bodies are not kept
	log    *slog.Logger // nil: slog.Default
	err    error        // of the first write that failed: nothing is written after it
}

// openOutput opens the output file, or stdout for "-". A new crawl writes a new
// file; one that goes on appends.
func openOutput(name string, stdout io.Writer, goOn bool) (*output, error) {
	if name == "-" {
		return &output{w: stdout}, nil
	}
	if err := refuseOverwrite(name, goOn); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, usage("cannot open the output: %w", err)
	}
	if err := cutTornLine(f); err != nil {
		return nil, fmt.Errorf("cannot repair the end of the output: %w", errors.Join(err, f.Close()))
	}
	return &output{w: f, close: f.Close}, nil
}

// refuseOverwrite refuses a file that holds something, for a crawl that does
// not go on. A pipe or a device is no such file, nor is the empty one that a
// crawl leaves which was killed before its first visit.
func refuseOverwrite(name string, goOn bool) error {
	if info, err := os.Stat(name); goOn || err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil
	}
	return usage("%s exists, and a new crawl does not write over it: move it away, or name another file with --output", name)
}

// cutTornLine cuts a last line of ours without an end: a full disk or a loss of
// power may leave one. Its visit was never acked, and will be made again. The
// end of a file that is not ours is left alone, and gets a line end.
func cutTornLine(f *os.File) error {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	end, block := info.Size(), make([]byte, 64<<10)
	for end > 0 {
		part := block[:min(end, int64(len(block)))]
		if _, err := f.ReadAt(part, end-int64(len(part))); err != nil {
			return err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			end -= int64(len(part) - i - 1)
			break
		}
		end -= int64(len(part))
	}
	if end == info.Size() {
		return nil
	}
	head := make([]byte, min(info.Size()-end, int64(len(lineHead))))
	if _, err := f.ReadAt(head, end); err != nil {
		return err
	}
	if !strings.HasPrefix(lineHead, string(head)) {
		_, err := f.WriteString("\n")
		return err
	}
	return f.Truncate(end)
}

// lineHead is how every line of ours begins.
const lineHead = `{"url":`

// Record writes the line of one visit, and before it the body that it names.
// While there is no room for them it waits.
func (o *output) Record(ctx context.Context, v *crawler.Visit) error {
	r := newRecord(v, o.token)
	line, err := r.line()
	if err != nil {
		return err
	}
	if o.bodies != "" && r.SHA256 != "" {
		keep := func() error { return o.bodies.keep(r.SHA256, v.Response.Body) }
		if err := whenPossible(ctx, o.logger(), keep); err != nil {
			return err
		}
	}
	return o.write(ctx, line)
}

// write writes a line. While the disk is full it keeps the others waiting, too.
func (o *output) write(ctx context.Context, line []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	left, err := writeWhenPossible(ctx, o.w, line, o.logger())
	if err != nil && left < len(line) {
		o.err = err // a torn line stands there
	}
	return err
}

func (o *output) logger() *slog.Logger {
	if o.log == nil {
		return slog.Default()
	}
	return o.log
}

// Close closes the file.
func (o *output) Close() error {
	if o.close == nil {
		return nil
	}
	if err := o.close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}
