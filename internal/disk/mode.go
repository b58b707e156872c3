package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// PrivateMode is the default mode of the files that decorum writes: only their owner can read them.
const PrivateMode fs.FileMode = 0o600

// MakeDirsForFileMode creates the directory name, and each missing parent, for files of mode file.
// Users who may read the files may list the directories, whatever the umask. An existing directory
// keeps its mode.
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
	if errors.Is(err, fs.ErrExist) { // another process has created it, or it is not a directory
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			return nil
		}
	}
	if err != nil || file == PrivateMode {
		return err
	}
	return os.Chmod(name, DirModeForFiles(file))
}

// DirModeForFiles returns the mode of a directory for files of mode file: users who may read the
// files may list the directory.
func DirModeForFiles(file fs.FileMode) fs.FileMode { return file | file&0o444>>2 }

// SetMode sets the mode of a new file, whatever the umask. If mode is PrivateMode it changes
// nothing: the file was created with that mode, and the umask may have removed more bits.
func SetMode(f *os.File, mode fs.FileMode) error {
	if mode == PrivateMode {
		return nil
	}
	return f.Chmod(mode)
}

// ReadableByOthers reports whether users other than the owner have any permission on a file. It is
// always false on Windows, where files have no modes.
func ReadableByOthers(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}

// WritableByOthers reports whether users other than the owner may write to a file. It is always
// false on Windows.
func WritableByOthers(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0
}
