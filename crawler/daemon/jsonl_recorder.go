package daemon

import (
	"context"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// A jsonlRecorder is the crawl's Recorder: one line of JSON a visit. Each line is
// written by one call as soon as the visit is over, so that a process that is
// killed leaves whole lines behind, and every visit whose ack is durable has
// its line. That costs a few microseconds a page. A loss of power leaves them
// too, because lines are on the disk before acks are (see bolt.Options.BeforeWrite).
type jsonlRecorder struct {
	mu            sync.Mutex
	w             io.Writer
	file          *jsonlFile // w, if it is a file
	productToken  string
	bodies        bodyStore    // zero: bodies are not kept
	log           *slog.Logger // nil: slog.Default
	onDiskFull    func(error)  // see retryWhileDiskFull
	firstWriteErr error        // of the first write that failed: nothing is written after it
}

// jsonlOptions say how a file of lines is opened.
type jsonlOptions struct {
	confinement  *confine.Paths // nil: none
	path         string         // "-": stdout
	maxFileBytes int64          // the size at which another file is begun, in bytes; 0: none
	fileMode     fs.FileMode
	stdout       io.Writer                    // for "-"
	resume       bool                         // append to what an earlier run has left; else the file must be new
	durable      datadir.DurableOutputLengths // how much of the file is on the disk
}

// openJSONLRecorder opens a file of lines, or standard output.
func openJSONLRecorder(opts jsonlOptions) (*jsonlRecorder, error) {
	if opts.path == "-" {
		return &jsonlRecorder{w: opts.stdout}, nil
	}
	if err := refuseOverwrite(opts.path, opts.resume); err != nil {
		return nil, err
	}
	f, err := openJSONLFile(opts.confinement, opts.path, opts.maxFileBytes, opts.fileMode, opts.durable.Find(opts.path))
	if err != nil {
		return nil, err
	}
	return &jsonlRecorder{w: f, file: f}, nil
}

// newJSONLRecorder returns a recorder that writes its lines to w.
func newJSONLRecorder(w io.Writer) *jsonlRecorder { return &jsonlRecorder{w: w} }

// refuseOverwrite refuses a file that holds something, for a crawl that does
// not go on, and one beside which full ones of an earlier crawl are. A pipe or a
// device is no such file, nor is the empty one that a crawl leaves which was
// killed before its first visit.
func refuseOverwrite(name string, resume bool) error {
	if resume {
		return nil
	}
	existing, err := rotatedFiles(name)
	if err != nil {
		return usage.Errorf("cannot look for earlier files of the output: %w", err)
	}
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		existing = append(existing, rotatedFileInfo{name: name})
	}
	if len(existing) == 0 {
		return nil
	}
	return usage.Errorf("%s exists, and a new crawl does not write over it: move it away, or name another file with --output", existing[0].name)
}

// Record writes the line of one visit, and before it the body that it names.
// While there is no room for them it waits.
func (o *jsonlRecorder) Record(ctx context.Context, v *crawler.Visit) error {
	r := newOutputRecord(v, o.productToken)
	line, err := r.encodeLine()
	if err != nil {
		return err
	}
	if o.bodies != (bodyStore{}) && r.SHA256 != "" {
		put := func() error { return o.bodies.putBody(r.SHA256, v.Response.Body) }
		if err := retryWhileDiskFull(ctx, o.loggerOrDefault(), o.onDiskFull, put); err != nil {
			return err
		}
	}
	return o.writeLine(ctx, line)
}

// Write appends lines that are not of visits.
func (o *jsonlRecorder) Write(lines []byte) (int, error) { return o.w.Write(lines) }

// writeLine writes a line. While the disk is full it keeps the others waiting, too.
func (o *jsonlRecorder) writeLine(ctx context.Context, line []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.firstWriteErr != nil {
		return o.firstWriteErr
	}
	unwritten, err := writeRetryingDiskFull(ctx, o.w, line, o.loggerOrDefault(), o.onDiskFull)
	if err != nil && unwritten < len(line) {
		o.firstWriteErr = err // a torn line stands there
	}
	return err
}

func (o *jsonlRecorder) loggerOrDefault() *slog.Logger {
	if o.log == nil {
		return slog.Default()
	}
	return o.log
}

// Sync returns when all lines that were written before are on the disk. What
// reads standard output looks after them itself.
func (o *jsonlRecorder) Sync() error {
	if o.file == nil {
		return nil
	}
	return o.file.Sync()
}

// Close closes the file. It comes after the state has been closed, which has it
// synced.
func (o *jsonlRecorder) Close() error {
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}
