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

// robotsDir is the name of the directory of robots.txt files, in that of the ledger.
const robotsDir = "robots"

// robotsFileStore stores robots.txt files by their SHA-256. Its methods may be called at the same time.
type robotsFileStore struct {
	dir         string
	newFileMode fs.FileMode // of new files

	mu            sync.Mutex                   // guards durableHashes
	durableHashes recent.Map[string, struct{}] // hashes of files that are known to be on the disk
}

// knownHashes is how many hashes stay in memory: at least so many, at most twice as many. The disk is asked
// for other hashes.
const knownHashes = 50_000

// robotsFilePath returns the path of the file with a hash below dir. The hash must have two digits or more.
func robotsFilePath(dir, hash string) string { return filepath.Join(dir, hash[:2], hash+".txt") }

// HasRobotsFile reports whether the ledger has the robots.txt with the given SHA-256, in hex.
func (l *Ledger) HasRobotsFile(hash string) bool { return l.robotsStore.has(hash) }

// StoreRobotsFile stores a robots.txt under its SHA-256, in hex. When it returns, the file is on the disk,
// and a record may name it. It returns an error if body has another hash.
func (l *Ledger) StoreRobotsFile(hash string, body []byte) error {
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != hash {
		return fmt.Errorf("ledger: a robots.txt of %d bytes does not have the hash %q", len(body), hash)
	}
	if err := l.robotsStore.write(hash, body); err != nil {
		return fmt.Errorf("ledger: cannot store a robots.txt: %w", err)
	}
	return nil
}

// has reports whether the file with a hash is on the disk.
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
	f.markDurable(hash) // write syncs a file before it has this name
	return true
}

// markDurable remembers that the file with a hash is on the disk.
func (f *robotsFileStore) markDurable(hash string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.durableHashes.Put(hash, struct{}{}, knownHashes)
}

// write writes a file durably and atomically: a file with the name is complete. Two callers may write the
// same file at the same time.
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

// makeDirDurably makes a directory and its parent, unless they exist, and syncs their names. Users who may
// read files of the given mode may list them.
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
