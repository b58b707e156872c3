package datadir

import (
	"errors"
	"io/fs"
	"os"
	"slices"
)

// NewCrawlFiles are the files that a new crawl creates in its directory, so that a crawl that has sent
// nothing can remove them again.
type NewCrawlFiles struct {
	dir      StateDir
	names    []string // the crawl's files that did not exist before
	isNewDir bool
}

// NewCrawlFiles returns the files that Lock creates in d: the directory, and the lock file. Call it before
// Lock, and FindMissing after it.
func (d StateDir) NewCrawlFiles() NewCrawlFiles {
	n := NewCrawlFiles{dir: d, isNewDir: isMissing(string(d))}
	if isMissing(d.Path(LockFile)) {
		n.names = append(n.names, LockFile)
	}
	return n
}

// FindMissing adds the files of a crawl that the directory does not have yet. The caller holds the lock:
// otherwise another process could create one of them afterwards, and Remove would remove it.
func (n *NewCrawlFiles) FindMissing() {
	for _, file := range []string{StoreFile, RobotsFile, ProjectFile, OutputFile, BodiesDir, LedgerDir, SocketFile} {
		if isMissing(n.dir.Path(file)) {
			n.names = append(n.names, file)
		}
	}
}

func isMissing(name string) bool {
	_, err := os.Lstat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// Remove removes the files, and the directory if it is new and has no other file. It keeps OutputFile if it
// has lines. The caller holds the lock, and has closed the files.
func (n NewCrawlFiles) Remove() (err error) {
	if info, statErr := os.Stat(n.dir.Path(OutputFile)); statErr == nil && info.Size() > 0 {
		n.names = slices.DeleteFunc(n.names, func(file string) bool { return file == OutputFile })
	}
	for _, file := range n.names {
		err = errors.Join(err, os.RemoveAll(n.dir.Path(file)))
	}
	if n.isNewDir {
		_ = os.Remove(string(n.dir)) // fails if it has other files, such as those of --output
	}
	return err
}
