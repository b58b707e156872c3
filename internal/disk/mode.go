package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// PrivateMode is the default mode of files that decorum writes: only its own user can read
// them.
const PrivateMode fs.FileMode = 0o600

// MakeDirsForFileMode creates a directory for files of a mode, and each missing parent. Users who
// may read the files may list the directories, whatever the umask. An existing
// directory keeps its mode.
func MakeDirsForFileMode(name string, file fs.FileMode) error {
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		return nil
	}
	if parent := filepath.Dir(name); errors.Is(err, fs.ErrNotExist) && parent != name {
		if err := MakeDirsForFileMode(parent, file); err != nil {
			return err
		}
	}
	err = os.Mkdir(name, 0o700)
	if errors.Is(err, fs.ErrExist) { // another process created it in the meantime, or it is not a directory
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			return nil
		}
	}
	if err != nil || file == PrivateMode {
		return err
	}
	return os.Chmod(name, DirModeForFiles(file))
}

// DirModeForFiles returns the mode of a directory for files of a mode: users who may read the
// files may list the directory.
func DirModeForFiles(file fs.FileMode) fs.FileMode { return file | file&0o444>>2 }

// SetMode sets the mode of a new file, whatever the umask. It leaves a PrivateMode file as
// it was created: there the umask may remove more bits.
func SetMode(f *os.File, mode fs.FileMode) error {
	if mode == PrivateMode {
		return nil
	}
	return f.Chmod(mode)
}

// ReadableByOthers reports whether others than its owner may use a file, where files have
// modes.
func ReadableByOthers(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}

// WritableByOthers reports whether others than its owner may write to a file, where files
// have modes.
func WritableByOthers(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0
}
