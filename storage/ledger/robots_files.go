package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// robotsDir is where robots.txt files are, in the directory of the ledger.
const robotsDir = "robots"

// robotsFiles keeps robots.txt files by their SHA-256.
type robotsFiles struct {
	dir  string
	mode fs.FileMode // of new files

	mu    sync.Mutex
	known map[string]bool // those that are on the disk
}

// maxKnownHashes is how many hashes are held in memory; of others the disk is asked.
const maxKnownHashes = 100_000

// robotsFile returns the name of the file with a hash, in dir.
func robotsFile(dir, hash string) string { return filepath.Join(dir, hash[:2], hash+".txt") }

// HasRobots reports whether the robots.txt with that SHA-256, in hex, is kept.
func (l *Ledger) HasRobots(hash string) bool { return l.files.has(hash) }

// KeepRobots keeps a robots.txt, and returns when it is on the disk: a record may
// then name it by its SHA-256, in hex. It is an error if body has another.
func (l *Ledger) KeepRobots(hash string, body []byte) error {
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != hash {
		return fmt.Errorf("ledger: a robots.txt of %d bytes does not have the hash %q", len(body), hash)
	}
	if err := l.files.keep(hash, body); err != nil {
		return fmt.Errorf("ledger: cannot keep a robots.txt: %w", err)
	}
	return nil
}

func (f *robotsFiles) has(hash string) bool {
	f.mu.Lock()
	known := f.known[hash]
	f.mu.Unlock()
	if known || len(hash) != 2*sha256.Size {
		return known
	}
	if _, err := os.Stat(robotsFile(f.dir, hash)); err != nil {
		return false
	}
	f.add(hash) // what has its name has been synced
	return true
}

func (f *robotsFiles) add(hash string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil || len(f.known) >= maxKnownHashes {
		f.known = map[string]bool{}
	}
	f.known[hash] = true
}

// keep writes a file, and its name, to the disk: what has the name is whole.
// Two callers with the same file do each other no harm.
func (f *robotsFiles) keep(hash string, body []byte) error {
	name := robotsFile(f.dir, hash)
	dir := filepath.Dir(name)
	if err := makeDir(dir, f.mode); err != nil {
		return err
	}
	if err := errors.Join(disk.WriteFileAtomic(name, dir, f.mode, body), disk.SyncDir(dir)); err != nil {
		return err
	}
	f.add(hash)
	return nil
}

// makeDir makes a directory for files of a mode, and its parent, durably.
func makeDir(dir string, mode fs.FileMode) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := disk.MakeDirAll(dir, mode); err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	return errors.Join(disk.SyncDir(parent), disk.SyncDir(filepath.Dir(parent)))
}
