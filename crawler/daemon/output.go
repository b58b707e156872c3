package daemon

import (
	"context"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"github.com/decorum-crawler/decorum/crawler"
)

// An output is the crawl's Recorder: one line of JSON a visit. Each line is
// written by one call as soon as the visit is over, so that a process that is
// killed leaves whole lines behind, and every visit whose ack is durable has
// its line. That costs a few microseconds a page. A loss of power leaves them
// too, because lines are on the disk before acks are (see bolt.Options.BeforeWrite).
type output struct {
	mu     sync.Mutex
	w      io.Writer
	file   *jsonlFile // w, if it is a file
	token  string
	bodies bodies       // zero: bodies are not kept
	log    *slog.Logger // nil: slog.Default
	paused func(error)  // see whenPossible
	err    error        // of the first write that failed: nothing is written after it
}

// openOutput opens the output file, or stdout for "-". A new crawl writes a new
// file; one that goes on appends. limit is the size at which another file is
// begun. The file is opened as c allows, and known says how much of it is on the disk.
func openOutput(
	c *confinement, name string, limit Size, mode fs.FileMode, stdout io.Writer, goOn bool, known knownFiles,
) (*output, error) {
	if name == "-" {
		return &output{w: stdout}, nil
	}
	if err := refuseOverwrite(name, goOn); err != nil {
		return nil, err
	}
	f, err := openLines(c, name, int64(limit), mode, known.of(name))
	if err != nil {
		return nil, err
	}
	return &output{w: f, file: f}, nil
}

// refuseOverwrite refuses a file that holds something, for a crawl that does
// not go on, and one beside which full ones of an earlier crawl are. A pipe or a
// device is no such file, nor is the empty one that a crawl leaves which was
// killed before its first visit.
func refuseOverwrite(name string, goOn bool) error {
	if goOn {
		return nil
	}
	full, err := rotatedFiles(name)
	if err != nil {
		return usage("cannot look for earlier files of the output: %w", err)
	}
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		full = append(full, rotatedFile{name: name})
	}
	if len(full) == 0 {
		return nil
	}
	return usage("%s exists, and a new crawl does not write over it: move it away, or name another file with --output", full[0].name)
}

// Record writes the line of one visit, and before it the body that it names.
// While there is no room for them it waits.
func (o *output) Record(ctx context.Context, v *crawler.Visit) error {
	r := newRecord(v, o.token)
	line, err := r.encodeLine()
	if err != nil {
		return err
	}
	if o.bodies != (bodies{}) && r.SHA256 != "" {
		keep := func() error { return o.bodies.keep(r.SHA256, v.Response.Body) }
		if err := whenPossible(ctx, o.logger(), o.paused, keep); err != nil {
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
	left, err := writeWhenPossible(ctx, o.w, line, o.logger(), o.paused)
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

// Sync returns when all lines that were written before are on the disk. What
// reads standard output looks after them itself.
func (o *output) Sync() error {
	if o.file == nil {
		return nil
	}
	return o.file.Sync()
}

// Close closes the file. It comes after the state has been closed, which has it
// synced.
func (o *output) Close() error {
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}
