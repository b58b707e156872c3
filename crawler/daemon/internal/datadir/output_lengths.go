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

// An OutputFileCheckpoint is the record in the state of a crawl about one output file.
type OutputFileCheckpoint struct {
	bolt.OutputFileExtent
	IsRecorded                 bool         // false: the state has no record of the file
	UncheckedSinceUncleanClose bool         // see DurableOutputLengths
	Log                        *slog.Logger // for messages about cut files; nil: slog.Default
}

// DurableOutputLengths holds the durable lengths of the output files, as the state of a crawl records
// them. The zero value holds no lengths.
type DurableOutputLengths struct {
	stateDir                   StateDir
	files                      []bolt.OutputFileExtent
	UncheckedSinceUncleanClose bool // the state was not closed in order, and the files have not been checked since
}

// PathToRecord returns the path under which the state records an output file or directory. A path below the
// crawl's directory is relative to it, so that the directory may be moved.
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

// Find returns the record of the output file or directory at path name. Its IsRecorded is false if the
// state has none.
func (k DurableOutputLengths) Find(name string) OutputFileCheckpoint {
	path := k.stateDir.PathToRecord(name)
	for _, f := range k.files {
		if f.Path == path {
			return OutputFileCheckpoint{OutputFileExtent: f, IsRecorded: true,
				UncheckedSinceUncleanClose: k.UncheckedSinceUncleanClose}
		}
	}
	return OutputFileCheckpoint{}
}

// ReadDurableOutputLengths reads the records of the output files from the closed state of a crawl. No
// process may have the state open.
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

// DurableOutputLengthsFromStores returns the records of the output files from the open stores s.
func (d StateDir) DurableOutputLengthsFromStores(ctx context.Context,
	s CrawlStores) (k DurableOutputLengths, err error) {
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

// outputLengthsFile holds the lengths of the output files for a crawl whose state is in Redis. Several
// processes share that state, and each has its own output files.
const outputLengthsFile = "lengths.json"

// lengthsInterval is the minimum time between two writes of outputLengthsFile. A recorded length that is too
// low only allows a damaged end to be cut further back. The bytes on the disk are whole, so every loss is
// noticed.
const lengthsInterval = time.Second

// A durableLengthRecorder writes the durable lengths of the output files to a file.
type durableLengthRecorder struct {
	path            string
	listOutputFiles func() []bolt.OutputFileExtent
	mu              sync.Mutex // guards lastSavedAt
	lastSavedAt     time.Time
}

// saveIfDue writes the lengths, unless the last write is younger than lengthsInterval.
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
		return fmt.Errorf("cannot save the lengths of the output files: %w", err)
	}
	l.lastSavedAt = now
	return nil
}

// readOutputLengths returns the lengths that a durableLengthRecorder wrote. The file does not say whether
// the crawl ended in order, so all lines must be checked.
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
		return k, fmt.Errorf("%s cannot be read: %w; remove it, and the crawl repairs the ends of its "+
			"output files without it", d.Path(outputLengthsFile), err)
	}
	return k, nil
}
