package datadir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// An OutputFileCheckpoint is the record of a file of output in the state of a crawl.
type OutputFileCheckpoint struct {
	bolt.OutputFileExtent
	IsRecorded                 bool
	UncheckedSinceUncleanClose bool         // the state was not closed in order
	Log                        *slog.Logger // for cuts, if its user sets it; nil: slog.Default
}

// DurableOutputLengths are the durable lengths of the files of output, by the state of the crawl.
// The zero value has no lengths.
type DurableOutputLengths struct {
	stateDir                   StateDir
	files                      []bolt.OutputFileExtent
	UncheckedSinceUncleanClose bool // the state was not closed in order, and the files have not been checked since
}

// PathToRecord returns the name of a file or directory of output in the state. Names below
// the crawl's directory are relative to it, so that the directory may be moved.
func (d StateDir) PathToRecord(name string) string {
	absDir, err := filepath.Abs(string(d))
	absPath, err2 := filepath.Abs(name)
	if errors.Join(err, err2) != nil {
		return name
	}
	if rel, err := filepath.Rel(absDir, absPath); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return absPath
}

// Find returns the record of a file or directory.
func (k DurableOutputLengths) Find(name string) OutputFileCheckpoint {
	path := k.stateDir.PathToRecord(name)
	for _, f := range k.files {
		if f.Path == path {
			return OutputFileCheckpoint{OutputFileExtent: f, IsRecorded: true, UncheckedSinceUncleanClose: k.UncheckedSinceUncleanClose}
		}
	}
	return OutputFileCheckpoint{}
}

// ReadDurableOutputLengths opens the state of a crawl and returns its records of the files of output.
// No process may have the state open.
func (d StateDir) ReadDurableOutputLengths(p project.Project) (k DurableOutputLengths, err error) {
	if p.Store.Redis.IsUsed() {
		return d.readOutputLengths()
	}
	k = DurableOutputLengths{stateDir: d}
	var clean bool
	if k.files, clean, err = bolt.ReadOutputFileRecords(d.Path(StoreFile)); err != nil {
		return k, fmt.Errorf("cannot open the state of the crawl: %w", err)
	}
	k.UncheckedSinceUncleanClose = !clean
	return k, nil
}

// DurableOutputLengthsFromStores returns the records of the files of output in an open state.
func (d StateDir) DurableOutputLengthsFromStores(ctx context.Context, s CrawlStores) (k DurableOutputLengths, err error) {
	if s.IsRemote {
		return d.readOutputLengths()
	}
	k = DurableOutputLengths{stateDir: d}
	b, ok := s.Frontier.(interface {
		RecordedOutputExtents(context.Context) ([]bolt.OutputFileExtent, error)
		OutputMayBeTorn() bool
	})
	if !ok {
		return k, nil
	}
	k.UncheckedSinceUncleanClose = b.OutputMayBeTorn()
	k.files, err = b.RecordedOutputExtents(ctx)
	return k, err
}

// A crawl with its state in Redis keeps the lengths of its files in a file beside them:
// several processes share the state, and each has its own files.
const outputLengthsFile = "lengths.json"

// lengthsInterval is the shortest time between two writes of that file. A length that is
// too low only allows a longer cut; no loss goes unnoticed, because the bytes on the
// disk are whole.
const lengthsInterval = time.Second

// durableLengthRecorder keeps how much of each file is on the disk, in a file.
type durableLengthRecorder struct {
	path            string
	listOutputFiles func() []bolt.OutputFileExtent
	mu              sync.Mutex // guards lastSavedAt
	lastSavedAt     time.Time
}

// saveIfDue writes the lengths, at most every lengthsInterval.
func (l *durableLengthRecorder) saveIfDue() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.lastSavedAt) < lengthsInterval {
		return nil
	}
	files := l.listOutputFiles()
	if len(files) == 0 {
		return nil
	}
	text, err := json.Marshal(files)
	if err == nil {
		err = WriteFileAtomic(l.path, text)
	}
	if err != nil {
		return fmt.Errorf("cannot keep how long the files of output are: %w", err)
	}
	l.lastSavedAt = now
	return nil
}

// readOutputLengths returns the lengths that keep wrote. It cannot know whether the crawl
// ended in order, so all lines are checked.
func (d StateDir) readOutputLengths() (k DurableOutputLengths, err error) {
	k = DurableOutputLengths{stateDir: d, UncheckedSinceUncleanClose: true}
	text, err := os.ReadFile(d.Path(outputLengthsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &k.files)
	}
	if err != nil {
		return k, fmt.Errorf("%s cannot be read: %w; remove it, and the crawl mends the ends of its files of output without it",
			d.Path(outputLengthsFile), err)
	}
	return k, nil
}
