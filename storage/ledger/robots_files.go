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
	"github.com/decorum-crawler/decorum/internal/recent"
)

// robotsDir is where robots.txt files are, in the directory of the ledger.
const robotsDir = "robots"

// robotsFileStore keeps robots.txt files by their SHA-256.
type robotsFileStore struct {
	dir         string
	newFileMode fs.FileMode // of new files

	mu            sync.Mutex                   // guards durableHashes
	durableHashes recent.Map[string, struct{}] // those that are on the disk
}

// knownHashes is how many hashes are held in memory at least, twice as many at most; of others the disk is
// asked.
const knownHashes = 50_000

// robotsFilePath returns the name of the file with a hash, in dir.
func robotsFilePath(dir, hash string) string { return filepath.Join(dir, hash[:2], hash+".txt") }

// HasRobotsFile reports whether the robots.txt with that SHA-256, in hex, is kept.
func (l *Ledger) HasRobotsFile(hash string) bool { return l.robotsStore.has(hash) }

// StoreRobotsFile keeps a robots.txt, and returns when it is on the disk: a record may
// then name it by its SHA-256, in hex. It is an error if body has another.
func (l *Ledger) StoreRobotsFile(hash string, body []byte) error {
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != hash {
		return fmt.Errorf("ledger: a robots.txt of %d bytes does not have the hash %q", len(body), hash)
	}
	if err := l.robotsStore.write(hash, body); err != nil {
		return fmt.Errorf("ledger: cannot keep a robots.txt: %w", err)
	}
	return nil
}

func (f *robotsFileStore) has(hash string) bool {
	f.mu.Lock()
	_, known := f.durableHashes.Get(hash, knownHashes)
	f.mu.Unlock()
	if known || len(hash) != 2*sha256.Size {
		return known
	}
	if _, err := os.Stat(robotsFilePath(f.dir, hash)); err != nil {
		return false
	}
	f.markDurable(hash) // what has its name has been synced
	return true
}

func (f *robotsFileStore) markDurable(hash string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.durableHashes.Put(hash, struct{}{}, knownHashes)
}

// write writes a file, and its name, to the disk: what has the name is whole.
// Two callers with the same file do each other no harm.
func (f *robotsFileStore) write(hash string, body []byte) error {
	name := robotsFilePath(f.dir, hash)
	dir := filepath.Dir(name)
	if err := makeDirDurably(dir, f.newFileMode); err != nil {
		return err
	}
	if err := errors.Join(disk.WriteFileAtomic(name, dir, f.newFileMode, body), disk.SyncDir(dir)); err != nil {
		return err
	}
	f.markDurable(hash)
	return nil
}

// makeDirDurably makes a directory for files of a mode, and its parent, durably.
func makeDirDurably(dir string, mode fs.FileMode) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := disk.MakeDirsForFileMode(dir, mode); err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	return errors.Join(disk.SyncDir(parent), disk.SyncDir(filepath.Dir(parent)))
}
