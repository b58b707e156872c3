package sinks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// Bodies is the directory that keeps the bodies of pages, as decoded, each once
// under its SHA-256: ab/cd/abcd….
type bodyStore struct {
	dir         string
	newFileMode fs.FileMode // of new files
}

// unfinishedDir is where bodies are until they are whole.
const unfinishedDir = "new"

// openBodyStore opens the directory, and removes unfinished files of a crash. New files
// get the mode.
func openBodyStore(dir string, mode fs.FileMode) (bodyStore, error) {
	b := bodyStore{dir, mode}
	err := os.RemoveAll(b.joinPath(unfinishedDir))
	return b, errors.Join(err, disk.MakeDirsForFileMode(b.joinPath(unfinishedDir), mode))
}

func (b bodyStore) joinPath(parts ...string) string {
	return filepath.Join(append([]string{b.dir}, parts...)...)
}

// putBody writes a body, whose SHA-256 in hexadecimal is sum, unless it is there.
// When it returns the body is with the operating system, and its bytes are on the
// disk: a power cut may take its name away, and leaves no half of it.
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
