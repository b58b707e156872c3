package sinks

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// A JSONLRecorder is the crawl's Recorder: one line of JSON a visit. Each line is
// written by one call as soon as the visit is over, so that a process that is
// killed leaves whole lines behind, and every visit whose ack is durable has
// its line. That costs a few microseconds a page. A loss of power leaves them
// too, because lines are on the disk before acks are (see bolt.Options.BeforeWrite).
type JSONLRecorder struct {
	mu            sync.Mutex
	w             io.Writer
	file          *jsonlFile // w, if it is a file
	productToken  string
	bodies        bodyStore // zero: bodies are not kept
	diskFull      diskFullRetrier
	firstWriteErr error // of the first write that failed: nothing is written after it
}

// OpenJSONLRecorder opens the file of lines that cfg names, or standard output.
func OpenJSONLRecorder(cfg Config) (*JSONLRecorder, error) {
	o := &JSONLRecorder{
		w: cfg.Stdout, productToken: cfg.ProductToken, diskFull: diskFullRetrier{log: cfg.Log, onDiskFull: cfg.OnDiskFull},
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

// NewJSONLRecorder returns a recorder that writes its lines to w.
func NewJSONLRecorder(w io.Writer) *JSONLRecorder { return &JSONLRecorder{w: w} }

// refuseOverwrite refuses a file that holds something, for a crawl that does
// not go on, and one beside which full ones of an earlier crawl are. A pipe or a
// device is no such file, nor is the empty one that a crawl leaves which was
// killed before its first visit.
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
	return usage.Errorf("%s exists, and a new crawl does not write over it: move it away, or name another file with --output", existing[0].Path)
}

// Record writes the line of one visit, and before it the body that it names.
// While there is no room for them it waits.
func (o *JSONLRecorder) Record(ctx context.Context, v *crawler.Visit) error {
	r := newOutputRecord(v, o.productToken)
	line, err := r.encodeLine()
	if err != nil {
		return err
	}
	if o.bodies != (bodyStore{}) && r.SHA256 != "" {
		put := func() error { return o.bodies.putBody(r.SHA256, v.Response.Body) }
		if err := o.diskFull.retry(ctx, put); err != nil {
			return err
		}
	}
	return o.writeLine(ctx, line)
}

// Write appends lines that are not of visits.
func (o *JSONLRecorder) Write(lines []byte) (int, error) { return o.w.Write(lines) }

// writeLine writes a line. While the disk is full it keeps the others waiting, too.
func (o *JSONLRecorder) writeLine(ctx context.Context, line []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.firstWriteErr != nil {
		return o.firstWriteErr
	}
	unwritten := line
	err := o.diskFull.retry(ctx, func() error {
		n, err := o.w.Write(unwritten)
		unwritten = unwritten[n:]
		return err
	})
	if err != nil && len(unwritten) < len(line) {
		o.firstWriteErr = err // a torn line stands there
	}
	return err
}

// Sync returns when all lines that were written before are on the disk. What
// reads standard output looks after them itself.
func (o *JSONLRecorder) Sync() error {
	if o == nil || o.file == nil {
		return nil
	}
	return o.file.Sync()
}

// Close closes the file. It comes after the state has been closed, which has it
// synced.
func (o *JSONLRecorder) Close() error {
	if o == nil || o.file == nil {
		return nil
	}
	return o.file.Close()
}

// openJSONLAndMoveOldIfFresh opens the file of lines. If the crawl starts afresh, it moves an
// earlier crawl out of the way after it has opened a file that the user chose: if that
// file cannot be opened, nothing is moved.
func openJSONLAndMoveOldIfFresh(cfg *Config) (out *JSONLRecorder, err error) {
	dir := cfg.StateDir
	if cfg.JSONLPath != "" {
		if dir.IsOwnStateFile(cfg.JSONLPath) {
			return nil, usage.Errorf("--output: %s is a file of the crawl's own state; name another", cfg.JSONLPath)
		}
		if out, err = OpenJSONLRecorder(*cfg); err != nil {
			return nil, err
		}
	}
	if cfg.StartFresh {
		var rotated []string
		if rotated, err = rotatedFileNames(dir.Path(datadir.OutputFile)); err == nil {
			err = dir.MoveOldCrawl(time.Now(), rotated)
		}
	}
	if out == nil && err == nil {
		ownFile := *cfg
		ownFile.Confinement, ownFile.JSONLPath = nil, dir.Path(datadir.OutputFile)
		out, err = OpenJSONLRecorder(ownFile)
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
