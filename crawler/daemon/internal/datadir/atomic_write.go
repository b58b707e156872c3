package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// replacementSuffix is appended to the name of a file while its replacement is written.
const replacementSuffix = ".new"

// WriteFileAtomic writes text to a file with mode 0600. A crash or a power cut leaves either the old file
// or the new one. When WriteFileAtomic returns nil, the new file is on the disk.
func WriteFileAtomic(name string, text []byte) error {
	// A file that a killed process has left may have another mode, and a link would lead elsewhere.
	temporary := name + replacementSuffix
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, name); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(name))
}
