package sinks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/internal/disk"
)

// A confinedDir is the directory of a JSONL file and of its rotated files. Its methods take names relative
// to the directory.
type confinedDir struct {
	path string
	root *os.Root // resolves names for a confined project; nil: the operating system does
}

// openJSONLDir opens the directory of the file at path name, within the confinement c. It creates a missing
// directory for files of this mode.
func openJSONLDir(c *confine.ProjectAccess, name string, mode fs.FileMode) (d confinedDir, err error) {
	d.path = filepath.Dir(name)
	if c == nil {
		return d, disk.MakeDirsForFileMode(d.path, mode)
	}
	d.root, err = c.OpenOutputDir(d.path, mode)
	return d, err
}

// openFile is os.OpenFile in the directory. For a confined project it opens an existing file only if that
// is a regular file.
func (d confinedDir) openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if d.root == nil {
		return os.OpenFile(filepath.Join(d.path, name), flag, perm)
	}
	info, err := d.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if flag&os.O_CREATE != 0 {
			flag |= os.O_EXCL // refuse a link that appears meanwhile
		}
		return d.root.OpenFile(name, flag, perm)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "open", Path: filepath.Join(d.path, name),
			Err: errors.New("it is not a regular file")}
	}
	f, err := d.root.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return confine.RequireSameFile(f, info)
}

func (d confinedDir) lstat(name string) (fs.FileInfo, error) {
	if d.root == nil {
		return os.Lstat(filepath.Join(d.path, name))
	}
	return d.root.Lstat(name)
}

func (d confinedDir) rename(from, to string) error {
	if d.root == nil {
		return os.Rename(filepath.Join(d.path, from), filepath.Join(d.path, to))
	}
	return d.root.Rename(from, to)
}

func (d confinedDir) readDirEntries() ([]fs.DirEntry, error) {
	if d.root == nil {
		return os.ReadDir(d.path)
	}
	return fs.ReadDir(d.root.FS(), ".")
}

// sync makes the names in the directory durable on the disk.
func (d confinedDir) sync() error {
	if d.root == nil {
		return disk.SyncDir(d.path)
	}
	return disk.SyncOpenDir(d.root)
}

// closeRoot closes the directory. It may be called more than once.
func (d confinedDir) closeRoot() error {
	if d.root == nil {
		return nil
	}
	return d.root.Close()
}
