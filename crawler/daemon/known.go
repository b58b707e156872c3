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

	"github.com/decorum-crawler/decorum/storage/bolt"
	"github.com/decorum-crawler/decorum/storage/ledger"
	"github.com/decorum-crawler/decorum/storage/warc"
)

// A knownFile is the record of a file of output in the state of a crawl.
type knownFile struct {
	bolt.OutputFile
	isKnown bool
	unclean bool // the state was not closed in order
	log     *slog.Logger
}

// knownFiles are the durable lengths of the files of output, by the state of the crawl.
// The zero value has no lengths.
type knownFiles struct {
	dir     stateDir
	files   []bolt.OutputFile
	unclean bool // the state was not closed in order, and the files have not been checked since
	log     *slog.Logger
}

// pathOf returns the name of a file or directory of output in the state. Names below
// the crawl's directory are relative to it, so that the directory may be moved.
func (d stateDir) pathOf(name string) string {
	home, err := filepath.Abs(string(d))
	full, err2 := filepath.Abs(name)
	if errors.Join(err, err2) != nil {
		return name
	}
	if rel, err := filepath.Rel(home, full); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return full
}

// of returns the record of a file or directory.
func (k knownFiles) of(name string) knownFile {
	path := k.dir.pathOf(name)
	for _, f := range k.files {
		if f.Path == path {
			return knownFile{OutputFile: f, isKnown: true, unclean: k.unclean, log: k.log}
		}
	}
	return knownFile{log: k.log}
}

// warc returns the record of the WARC files in a directory.
func (k knownFiles) warc(dir string) warc.Extent {
	f := k.of(dir)
	return warc.Extent{Name: f.Name, Size: f.SyncedSize}
}

// ledger returns the record of the ledger.
func (k knownFiles) ledger(dir string) ledger.Extent {
	f := k.of(dir)
	return ledger.Extent{Serial: int(f.Serial), Size: f.SyncedSize}
}

// files returns how much of each file is on the disk: see bolt.Options.OutputFiles.
func (o outputs) files(d stateDir) (files []bolt.OutputFile) {
	if o.out == nil {
		return nil
	}
	if serial, size, ok := o.out.file.onDisk(); ok {
		files = append(files, bolt.OutputFile{Path: d.pathOf(o.out.file.name), Serial: serial, SyncedSize: size})
	}
	if o.archive != nil {
		if e := o.archive.files.OnDisk(); e.Name != "" {
			files = append(files, bolt.OutputFile{Path: d.pathOf(o.archive.path), Name: e.Name, SyncedSize: e.Size})
		}
	}
	if o.proof != nil {
		if e := o.proof.ledger.OnDisk(); e.Serial != 0 {
			files = append(files, bolt.OutputFile{Path: d.pathOf(d.path(ledgerDir)), Serial: int64(e.Serial), SyncedSize: e.Size})
		}
	}
	return files
}

// readKnown opens the state of a crawl and returns its records of the files of output.
// No process may have the state open.
func (d stateDir) readKnown(p Project, log *slog.Logger) (k knownFiles, err error) {
	if p.Store.Redis.isUsed() {
		return d.readLengths(log)
	}
	k = knownFiles{dir: d, log: log}
	var clean bool
	if k.files, clean, err = bolt.ReadOutputFiles(d.path(storeFile)); err != nil {
		return k, fmt.Errorf("cannot open the state of the crawl: %w", err)
	}
	k.unclean = !clean
	return k, nil
}

// knownBy returns the records of the files of output in an open state.
func (d stateDir) knownBy(ctx context.Context, s stores, log *slog.Logger) (k knownFiles, err error) {
	if s.remote {
		return d.readLengths(log)
	}
	k = knownFiles{dir: d, log: log}
	b, ok := s.frontier.(interface {
		OutputFiles(context.Context) ([]bolt.OutputFile, error)
		OutputMayBeTorn() bool
	})
	if !ok {
		return k, nil
	}
	k.unclean = b.OutputMayBeTorn()
	k.files, err = b.OutputFiles(ctx)
	return k, err
}

// A crawl with its state in Redis keeps the lengths of its files in a file beside them:
// several processes share the state, and each has its own files.
const lengthsFile = "lengths.json"

// lengthsEvery is the shortest time between two writes of that file. A length that is
// too low only allows a longer cut; no loss goes unnoticed, because the bytes on the
// disk are whole.
const lengthsEvery = time.Second

// lengths keeps how much of each file is on the disk, in a file.
type lengths struct {
	file  string
	files func() []bolt.OutputFile
	mu    sync.Mutex // guards last
	last  time.Time
}

// keep writes the lengths, at most every lengthsEvery.
func (l *lengths) keep() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.last) < lengthsEvery {
		return nil
	}
	files := l.files()
	if len(files) == 0 {
		return nil
	}
	text, err := json.Marshal(files)
	if err == nil {
		err = writeWhole(l.file, text)
	}
	if err != nil {
		return fmt.Errorf("cannot keep how long the files of output are: %w", err)
	}
	l.last = now
	return nil
}

// readLengths returns the lengths that keep wrote. It cannot know whether the crawl
// ended in order, so all lines are checked.
func (d stateDir) readLengths(log *slog.Logger) (k knownFiles, err error) {
	k = knownFiles{dir: d, unclean: true, log: log}
	text, err := os.ReadFile(d.path(lengthsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &k.files)
	}
	if err != nil {
		return k, fmt.Errorf("%s cannot be read: %w; remove it, and the crawl mends the ends of its files of output without it",
			d.path(lengthsFile), err)
	}
	return k, nil
}
