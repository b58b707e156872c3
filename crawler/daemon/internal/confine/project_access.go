package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/disk"
)

// A ProjectAccess restricts the files that a project names to two directories. It applies
// to projects that come by the API: a caller with a token of the role operate may write
// a project, but must not read or write other files of the daemon's user. Names are
// checked with the project, and os.Root checks them again at each open, so that a later
// change, such as a symbolic link, does not lead out. A nil *ProjectAccess allows
// everything.
type ProjectAccess struct {
	OutputRoot       string // outputs are below it, or below home
	InputRoot        string // inputs are below it
	ProjectDir       string // the project's own directory
	ProtectedDataDir string // the daemon's directory: the project writes there only below home
	ProjectFilesDir  string // of project files: the project writes nothing to it

	AllowPrivate  bool                    // the project may reach into private networks
	IsKnownOutput func(path string) bool  // reports whether the project has begun the file
	RecordOutput  func(path string) error // records on the disk that the project begins the file
}

// errOutsideRoot refuses a path that is not below the directory that holds it.
var errOutsideRoot = errors.New("it is outside of the directory that projects of the API may use")

// AllowsInput reports whether the project may read a file, judged by its name.
func (c *ProjectAccess) AllowsInput(path string) bool { return datadir.IsWithin(path, c.InputRoot) }

// AllowsOutput reports whether the project may write a file, judged by its name.
func (c *ProjectAccess) AllowsOutput(path string) bool {
	return datadir.IsWithin(path, c.ProjectDir) || datadir.IsWithin(path, c.OutputRoot)
}

// OpenInput opens a file for reading. In a confinement the file must be a regular file below
// the input directory; symbolic links may lead from one place there to another.
func (c *ProjectAccess) OpenInput(name string) (*os.File, error) {
	if c == nil {
		return os.Open(name)
	}
	rel, err := filepath.Rel(c.InputRoot, name)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errOutsideRoot}
	}
	root, err := os.OpenRoot(c.InputRoot)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// Only regular files are read. The check after the open notices a file that replaced
	// this one; O_NONBLOCK lets even the open of a pipe return.
	info, err := root.Stat(rel)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return RequireSameFile(f, info)
}

// RequireSameFile returns f, or an error if f is not the file that info describes.
func RequireSameFile(f *os.File, info fs.FileInfo) (*os.File, error) {
	current, err := f.Stat()
	if err == nil && !os.SameFile(current, info) {
		err = &fs.PathError{Op: "open", Path: f.Name(), Err: errors.New("it was replaced at the same moment")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// OpenOutputDir opens a directory for writing. Below the directory that confines the
// project it follows no symbolic link, and creates missing directories for files of the
// given mode; with mode 0 it creates none.
func (c *ProjectAccess) OpenOutputDir(name string, createMode fs.FileMode) (*os.Root, error) {
	base := c.OutputRoot
	if datadir.IsWithin(name, c.ProjectDir) {
		base = c.ProjectDir
	}
	rel, err := filepath.Rel(base, name)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errOutsideRoot}
	}
	dir, err := os.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq("./"+filepath.ToSlash(rel), "/") { // the base is checked, too
		if part != "." {
			var next *os.Root
			if next, err = openOrCreateSubdir(dir, part, createMode); err == nil {
				dir, err = next, dir.Close()
			}
		}
		if err == nil && base != c.ProjectDir {
			err = c.refuseDaemonDir(dir)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", name, err), dir.Close())
		}
	}
	return dir, nil
}

// openOrCreateSubdir opens a directory in another, and follows no symbolic link. It creates a
// missing one for files of the mode createMode, unless that is 0.
func openOrCreateSubdir(dir *os.Root, name string, createMode fs.FileMode) (*os.Root, error) {
	info, err := dir.Lstat(name)
	if createMode != 0 && errors.Is(err, fs.ErrNotExist) {
		err = dir.Mkdir(name, datadir.PrivateDirMode)
		if err == nil && createMode != datadir.PrivateFileMode {
			err = dir.Chmod(name, disk.DirModeForFiles(createMode)) // whatever the umask
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		info, err = dir.Lstat(name)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		err := errors.New("it is not a directory; symbolic links are not followed here")
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	current, err := next.Stat(".")
	if err == nil && !os.SameFile(current, info) {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("it was replaced at the same moment")}
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

// refuseDaemonDir refuses the daemon's own directories, whatever path led to them.
func (c *ProjectAccess) refuseDaemonDir(dir *os.Root) error {
	dirInfo, err := dir.Stat(".")
	if err != nil {
		return err
	}
	for _, daemonDir := range []string{c.ProtectedDataDir, c.ProjectFilesDir} {
		info, err := os.Stat(daemonDir)
		if err != nil {
			return err
		}
		if os.SameFile(dirInfo, info) {
			return errors.New("it is where the daemon keeps its own files, or project files")
		}
	}
	return nil
}
