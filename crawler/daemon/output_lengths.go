package daemon

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
	"github.com/decorum-crawler/decorum/storage/ledger"
	"github.com/decorum-crawler/decorum/storage/warc"
)

// An outputFileCheckpoint is the record of a file of output in the state of a crawl.
type outputFileCheckpoint struct {
	bolt.OutputFileExtent
	isRecorded                 bool
	uncheckedSinceUncleanClose bool // the state was not closed in order
	log                        *slog.Logger
}

// durableOutputLengths are the durable lengths of the files of output, by the state of the crawl.
// The zero value has no lengths.
type durableOutputLengths struct {
	stateDir                   stateDir
	files                      []bolt.OutputFileExtent
	uncheckedSinceUncleanClose bool // the state was not closed in order, and the files have not been checked since
	logger                     *slog.Logger
}

// pathToRecord returns the name of a file or directory of output in the state. Names below
// the crawl's directory are relative to it, so that the directory may be moved.
func (d stateDir) pathToRecord(name string) string {
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

// find returns the record of a file or directory.
func (k durableOutputLengths) find(name string) outputFileCheckpoint {
	path := k.stateDir.pathToRecord(name)
	for _, f := range k.files {
		if f.Path == path {
			return outputFileCheckpoint{OutputFileExtent: f, isRecorded: true, uncheckedSinceUncleanClose: k.uncheckedSinceUncleanClose, log: k.logger}
		}
	}
	return outputFileCheckpoint{log: k.logger}
}

// warcExtent returns the record of the WARC files in a directory.
func (k durableOutputLengths) warcExtent(dir string) warc.DurableExtent {
	f := k.find(dir)
	return warc.DurableExtent{FileName: f.Name, Size: f.SyncedSize}
}

// ledgerExtent returns the record of the ledger.
func (k durableOutputLengths) ledgerExtent(dir string) ledger.DurableExtent {
	f := k.find(dir)
	return ledger.DurableExtent{SegmentSerial: int(f.Serial), Size: f.SyncedSize}
}

// readDurableOutputLengths opens the state of a crawl and returns its records of the files of output.
// No process may have the state open.
func (d stateDir) readDurableOutputLengths(p project.Project, log *slog.Logger) (k durableOutputLengths, err error) {
	if p.Store.Redis.IsUsed() {
		return d.readOutputLengths(log)
	}
	k = durableOutputLengths{stateDir: d, logger: log}
	var clean bool
	if k.files, clean, err = bolt.ReadOutputFileRecords(d.path(storeFile)); err != nil {
		return k, fmt.Errorf("cannot open the state of the crawl: %w", err)
	}
	k.uncheckedSinceUncleanClose = !clean
	return k, nil
}

// durableOutputLengthsFromStores returns the records of the files of output in an open state.
func (d stateDir) durableOutputLengthsFromStores(ctx context.Context, s crawlStores, log *slog.Logger) (k durableOutputLengths, err error) {
	if s.isRemote {
		return d.readOutputLengths(log)
	}
	k = durableOutputLengths{stateDir: d, logger: log}
	b, ok := s.frontier.(interface {
		OutputFiles(context.Context) ([]bolt.OutputFileExtent, error)
		OutputMayBeTorn() bool
	})
	if !ok {
		return k, nil
	}
	k.uncheckedSinceUncleanClose = b.OutputMayBeTorn()
	k.files, err = b.OutputFiles(ctx)
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
		err = writeFileAtomic(l.path, text)
	}
	if err != nil {
		return fmt.Errorf("cannot keep how long the files of output are: %w", err)
	}
	l.lastSavedAt = now
	return nil
}

// readOutputLengths returns the lengths that keep wrote. It cannot know whether the crawl
// ended in order, so all lines are checked.
func (d stateDir) readOutputLengths(log *slog.Logger) (k durableOutputLengths, err error) {
	k = durableOutputLengths{stateDir: d, uncheckedSinceUncleanClose: true, logger: log}
	text, err := os.ReadFile(d.path(outputLengthsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &k.files)
	}
	if err != nil {
		return k, fmt.Errorf("%s cannot be read: %w; remove it, and the crawl mends the ends of its files of output without it",
			d.path(outputLengthsFile), err)
	}
	return k, nil
}

// loggerOrDefault returns the logger for cuts.
func (k outputFileCheckpoint) loggerOrDefault() *slog.Logger {
	if k.log == nil {
		return slog.Default()
	}
	return k.log
}
