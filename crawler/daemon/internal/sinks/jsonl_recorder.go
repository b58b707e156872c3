package sinks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// ErrReaderLeft is the cause of Record's error if the output is a pipe whose reader has closed it.
var ErrReaderLeft = errors.New("the reader of the output has closed it")

// A JSONLRecorder is the crawl's Recorder: it writes one line of JSON per visit. Each line is written by
// one call as soon as the visit has ended, which costs a few microseconds a page. A process that is killed
// therefore leaves whole lines, and every visit whose ack is durable has its line. The same holds after a
// loss of power, because lines are on the disk before acks are (see bolt.Options.BeforeWrite).
type JSONLRecorder struct {
	mu            sync.Mutex // guards firstWriteErr, and serializes the lines of Record on w
	w             io.Writer
	file          *jsonlFile // w, if w is a file that was opened here; nil otherwise
	productToken  string
	bodies        bodyStore // zero: bodies are not written
	writeOutlinks bool
	diskFull      diskFullRetrier
	firstWriteErr error            // of the write that left a torn line; no line is written after it
	lineCounts    [10]atomic.Int64 // see LineCounts
	lineBuffers   sync.Pool        // of *[]byte, in which lines are encoded
}

// maxLineBuffer is the longest line, in bytes, whose memory serves other lines. Lines with outlinks are long.
const maxLineBuffer = 64 << 10

// LineCounts returns how many lines of visits the recorder has written, by the first digit of their
// status: index 2 counts 2xx, index 0 the visits without a whole answer.
func (o *JSONLRecorder) LineCounts() (counts [10]int64) {
	for class := range counts {
		counts[class] = o.lineCounts[class].Load()
	}
	return counts
}

// OpenJSONLRecorder opens the JSONL file that cfg names, or standard output for "-". Unless cfg.Resume is
// set, it refuses a file that holds an earlier crawl.
func OpenJSONLRecorder(cfg Config) (*JSONLRecorder, error) {
	o := &JSONLRecorder{
		w: cfg.Stdout, productToken: cfg.ProductToken, writeOutlinks: cfg.WriteOutlinks,
		diskFull: diskFullRetrier{log: cfg.Log, onDiskFull: cfg.OnDiskFull},
	}
	if cfg.JSONLPath == "-" {
		return o, nil
	}
	if err := refuseOverwrite(cfg.JSONLPath, cfg.Resume); err != nil {
		return nil, err
	}
	durable := cfg.Durable.Find(cfg.JSONLPath)
	durable.Log = cfg.Log
	f, err := openJSONLFile(cfg.Confinement, cfg.JSONLPath, cfg.JSONLMaxFileBytes, cfg.FileMode, durable)
	if err != nil {
		return nil, err
	}
	o.w, o.file = f, f
	return o, nil
}

// NewJSONLRecorder returns a recorder that writes its lines to w. Its Sync and Close do nothing.
func NewJSONLRecorder(w io.Writer) *JSONLRecorder { return &JSONLRecorder{w: w} }

// refuseOverwrite returns an error if a crawl that is not resumed would write to a file with content, or
// beside rotated files of an earlier crawl. It accepts a pipe, a device, and the empty file of a crawl
// that was killed before its first visit.
func refuseOverwrite(name string, resume bool) error {
	if resume {
		return nil
	}
	existing, err := RotatedJSONLFiles(name)
	if err != nil {
		return usage.Errorf("cannot look for earlier files of the output: %w", err)
	}
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		existing = append(existing, RotatedJSONLFile{Path: name})
	}
	if len(existing) == 0 {
		return nil
	}
	return usage.Errorf("%s exists, and a new crawl does not write over it: move it away, or name another file with "+
		"--output", existing[0].Path)
}

// Record writes the body of a visit, if bodies are written, and then the line that names it. While the
// disk is full it waits, until ctx is done.
func (o *JSONLRecorder) Record(ctx context.Context, v *crawler.Visit) error {
	r := newOutputRecord(v, o.productToken)
	if o.writeOutlinks {
		r.setOutlinks(v.Links)
	}
	buf, ok := o.lineBuffers.Get().(*[]byte)
	if !ok {
		buf = new(make([]byte, 0, 1<<10))
	}
	defer o.lineBuffers.Put(buf)
	line, err := r.encodeLine(*buf)
	if err != nil {
		return err
	}
	if cap(line) <= maxLineBuffer {
		*buf = line
	}
	if o.bodies != (bodyStore{}) && r.SHA256 != "" {
		put := func() error { return o.bodies.putBody(r.SHA256, v.Response.Body) }
		if err := o.diskFull.retry(ctx, put); err != nil {
			return err
		}
	}
	err = o.writeLine(ctx, line)
	if err == nil {
		o.lineCounts[min(r.Status/100, len(o.lineCounts)-1)].Add(1)
	}
	return err
}

// Write appends whole lines that are not records of visits. It bypasses mu and the wait for a full disk.
func (o *JSONLRecorder) Write(lines []byte) (int, error) { return o.w.Write(lines) }

// writeLine writes a line. While the disk is full it holds o.mu, so that other lines wait as well.
func (o *JSONLRecorder) writeLine(ctx context.Context, line []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.firstWriteErr != nil {
		return o.firstWriteErr
	}
	// Continue after the part that a full disk has accepted: the line may be torn for a while, but never
	// mixed with another line.
	unwritten := line
	err := o.diskFull.retry(ctx, func() error {
		n, err := o.w.Write(unwritten)
		unwritten = unwritten[n:]
		return err
	})
	if errors.Is(err, syscall.EPIPE) {
		err = fmt.Errorf("%w: %w", ErrReaderLeft, err)
	}
	if err != nil && len(unwritten) < len(line) {
		o.firstWriteErr = err // the file ends with a torn line
	}
	return err
}

// Sync returns when all lines that were written before are on the disk. For standard output it does
// nothing: its reader must store the lines.
func (o *JSONLRecorder) Sync() error {
	if o == nil || o.file == nil {
		return nil
	}
	return o.file.Sync()
}

// Close syncs and closes the file: see Outputs.Close.
func (o *JSONLRecorder) Close() error {
	if o == nil || o.file == nil {
		return nil
	}
	return o.file.Close()
}

// openJSONLAndMoveOldIfFresh opens the JSONL file. With cfg.StartFresh it also moves the files of an
// earlier crawl away, a JSONL file in the data directory included. It opens a JSONL file elsewhere first:
// if that cannot be opened, nothing is moved.
func openJSONLAndMoveOldIfFresh(cfg *Config) (out *JSONLRecorder, err error) {
	dir, file := cfg.StateDir, *cfg
	if cfg.JSONLPath == "" {
		file.Confinement, file.JSONLPath = nil, dir.Path(datadir.OutputFile)
	} else if dir.IsOwnStateFile(cfg.JSONLPath) {
		return nil, usage.Errorf("--output: %s is a file of the crawl's own state; name another", cfg.JSONLPath)
	}
	if cfg.JSONLPath == "-" || !dir.Contains(file.JSONLPath) {
		if out, err = OpenJSONLRecorder(file); err != nil {
			return nil, err
		}
	}
	// Move an earlier crawl away, and only then open a file that is one of its files.
	if cfg.StartFresh {
		moved, err1 := rotatedFileNames(dir.Path(datadir.OutputFile))
		var own []string
		if out == nil {
			own, err = rotatedFileNames(file.JSONLPath)
			own = append(own, filepath.Base(file.JSONLPath))
		}
		if err = errors.Join(err1, err); err == nil {
			err = dir.MoveOldCrawl(time.Now(), append(moved, own...))
		}
	}
	if out == nil && err == nil {
		out, err = OpenJSONLRecorder(file)
	}
	if err != nil && out != nil {
		return nil, errors.Join(err, out.Close())
	}
	if out == nil {
		return nil, err
	}
	if cfg.WriteBodies {
		if out.bodies, err = openBodyStore(dir.Path(datadir.BodiesDir), cfg.FileMode); err != nil {
			return nil, errors.Join(err, out.Close())
		}
	}
	return out, nil
}
