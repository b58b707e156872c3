package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Private is the mode of what decorum writes, unless somebody chose another: the user
// that it runs as can read it, and no other.
const Private fs.FileMode = 0o600

// MakeDir makes a directory for files of a mode, and each of its parents that is missing:
// who may read the files may look into it, whatever the umask. One that is there keeps
// its mode.
func MakeDir(name string, file fs.FileMode) error {
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return nil
	}
	if parent := filepath.Dir(name); errors.Is(err, fs.ErrNotExist) && parent != name {
		if err := MakeDir(parent, file); err != nil {
			return err
		}
	}
	err = os.Mkdir(name, 0o700)
	if errors.Is(err, fs.ErrExist) { // somebody else has made it meanwhile, or it is no directory
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			return nil
		}
	}
	if err != nil || file == Private {
		return err
	}
	return os.Chmod(name, DirMode(file))
}

// DirMode returns the mode of a directory for files of a mode: who may read these may
// look into it.
func DirMode(file fs.FileMode) fs.FileMode { return file | file&0o444>>2 }

// SetMode gives a file that was just made the mode that was chosen for it. What is
// Private is so already, and the umask has not been asked: it may take away more.
func SetMode(f *os.File, mode fs.FileMode) error {
	if mode == Private {
		return nil
	}
	return f.Chmod(mode)
}
