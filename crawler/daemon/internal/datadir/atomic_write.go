package datadir

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// replacementSuffix ends the name of a file that will replace another.
const replacementSuffix = ".new"

// WriteFileAtomic writes a file so that a crash, or a power cut, leaves the old one or
// the new one; when it returns, the new one.
func WriteFileAtomic(name string, text []byte) error {
	temporary := name + replacementSuffix
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
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
