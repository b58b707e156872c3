package sinks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// A bodyStore keeps the decoded bodies of pages in a directory, each once under its SHA-256:
// ab/cd/abcd….
type bodyStore struct {
	dir         string
	newFileMode fs.FileMode
}

// unfinishedDir is the subdirectory in which a body is written before it gets its name.
const unfinishedDir = "new"

// openBodyStore opens the directory, creating it if needed, and removes the unfinished files of a crash.
// New files get mode.
func openBodyStore(dir string, mode fs.FileMode) (bodyStore, error) {
	b := bodyStore{dir, mode}
	err := os.RemoveAll(b.joinPath(unfinishedDir))
	return b, errors.Join(err, disk.MakeDirsForFileMode(b.joinPath(unfinishedDir), mode))
}

// joinPath returns the path of a file in the directory.
func (b bodyStore) joinPath(parts ...string) string {
	return filepath.Join(append([]string{b.dir}, parts...)...)
}

// putBody writes a body, unless the directory holds it. sum is the SHA-256 of the body in hexadecimal.
// When putBody returns, the bytes of the body are on the disk: a power cut can remove the file's name,
// but never leaves half a body under it.
func (b bodyStore) putBody(sum string, body []byte) error {
	dir := b.joinPath(sum[:2], sum[2:4])
	name := filepath.Join(dir, sum)
	if info, err := os.Stat(name); err == nil && info.Size() == int64(len(body)) {
		return nil
	}
	if err := disk.MakeDirsForFileMode(dir, b.newFileMode); err != nil {
		return err
	}
	return disk.WriteFileAtomic(name, b.joinPath(unfinishedDir), b.newFileMode, body)
}
