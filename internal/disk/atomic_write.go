package disk

import (
	"errors"
	"io/fs"
	"os"
)

// WriteFileAtomic makes a file that has its name only when it is whole and its bytes are on the
// disk; the name itself is for SyncDir. Until then it is in dir, of the same file
// system, under a name of its own: several may place the same file at a time.
//
// The file has the mode, whatever the umask.
func WriteFileAtomic(name, dir string, mode fs.FileMode, content []byte) error {
	f, err := os.CreateTemp(dir, "new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
