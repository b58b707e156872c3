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

// A ProjectAccess restricts the files that a project names to two directories. It applies to projects that
// come by the API: a caller with a token of the role operate may write a project, but must not read or
// write other files of the daemon's user. Names are checked with the project, and os.Root checks them
// again at each open, so that a later change, such as a symbolic link, does not lead out. A nil
// *ProjectAccess allows everything. All directories are absolute.
type ProjectAccess struct {
	OutputRoot       string // the project writes below this directory, or below ProjectDir
	InputRoot        string // the project reads below this directory
	ProjectDir       string // the project's own directory
	ProtectedDataDir string // the daemon's directory: the project writes there only below ProjectDir
	ProjectFilesDir  string // the directory of project files: the project never writes there

	AllowPrivate  bool                    // the project may connect to private networks
	IsKnownOutput func(path string) bool  // reports whether the project has begun the output at path
	RecordOutput  func(path string) error // records on the disk that the project begins the output at path
}

// errOutsideRoot is returned for a path that is outside of the directory to which it is confined.
var errOutsideRoot = errors.New("it is outside of the directory that projects of the API may use")

// AllowsInput reports whether the project may read the file at path. It looks only at the name.
func (c *ProjectAccess) AllowsInput(path string) bool { return datadir.IsWithin(path, c.InputRoot) }

// AllowsOutput reports whether the project may write the file at path. It looks only at the name.
func (c *ProjectAccess) AllowsOutput(path string) bool {
	return datadir.IsWithin(path, c.ProjectDir) || datadir.IsWithin(path, c.OutputRoot)
}

// OpenInput opens a file for reading. Unless c is nil, the file must be a regular file below InputRoot;
// symbolic links may lead from one place below InputRoot to another.
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
	// Accept only regular files. If the file is replaced before the open, O_NONBLOCK keeps even the open
	// of a pipe from blocking, and RequireSameFile notices the replacement.
	info, err := root.Stat(rel)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return RequireSameFile(f, info)
}

// RequireSameFile returns f if info describes it. Otherwise it closes f and returns an error.
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

// OpenOutputDir opens the directory at path name for writing. name must be ProjectDir or OutputRoot, or
// below one of them. OpenOutputDir follows no symbolic link below that directory. It creates missing
// directories for files of mode createMode, or none if createMode is 0. It refuses the daemon's own
// directories.
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
	// Go down one directory at a time, and check each of them, the base included.
	for part := range strings.SplitSeq("./"+filepath.ToSlash(rel), "/") {
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

// openOrCreateSubdir opens the subdirectory of dir called name, and follows no symbolic link. It creates a
// missing directory for files of mode createMode, unless that is 0.
func openOrCreateSubdir(dir *os.Root, name string, createMode fs.FileMode) (*os.Root, error) {
	// Create the directory, with the mode that fits its files, whatever the umask. Another goroutine may
	// create it at the same time.
	info, err := dir.Lstat(name)
	if createMode != 0 && errors.Is(err, fs.ErrNotExist) {
		err = dir.Mkdir(name, datadir.PrivateDirMode)
		if err == nil && createMode != datadir.PrivateFileMode {
			err = dir.Chmod(name, disk.DirModeForFiles(createMode))
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
	// OpenRoot follows links: check that it has opened the directory that Lstat saw.
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

// refuseDaemonDir returns an error if dir is the daemon's directory or that of the project files, whatever
// path led to it.
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
			return errors.New("the daemon keeps its own files or project files there")
		}
	}
	return nil
}
