package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/disk"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// A pathConfinement restricts the files that a project names to two directories. It applies
// to projects that come by the API: a caller with a token of the role operate may write
// a project, but must not read or write other files of the daemon's user. Names are
// checked with the project, and os.Root checks them again at each open, so that a later
// change, such as a symbolic link, does not lead out. A nil *confinement allows
// everything.
type pathConfinement struct {
	outputRoot       string // outputs are below it, or below home
	inputRoot        string // inputs are below it
	projectDir       string // the project's own directory
	protectedDataDir string // the daemon's directory: the project writes there only below home
	projectFilesDir  string // of project files: the project writes nothing to it

	allowPrivate  bool                    // the project may reach into private networks
	isKnownOutput func(path string) bool  // reports whether the project has begun the file
	recordOutput  func(path string) error // records on the disk that the project begins the file
}

// errOutsideRoot refuses a path that is not below the directory that holds it.
var errOutsideRoot = errors.New("it is outside of the directory that projects of the API may use")

// allowsPath reports whether c lets a project use a path, judged by its name.
func (c *pathConfinement) allowsPath(use project.FilePathUse, path string) bool {
	if use == project.InputFile {
		return datadir.IsWithin(path, c.inputRoot)
	}
	return datadir.IsWithin(path, c.projectDir) || datadir.IsWithin(path, c.outputRoot)
}

// openInput opens a file for reading. In a confinement the file must be a regular file below
// the input directory; symbolic links may lead from one place there to another.
func (c *pathConfinement) openInput(name string) (*os.File, error) {
	if c == nil {
		return os.Open(name)
	}
	rel, err := filepath.Rel(c.inputRoot, name)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errOutsideRoot}
	}
	root, err := os.OpenRoot(c.inputRoot)
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
	return requireSameFile(f, info)
}

// requireSameFile returns f, or an error if f is not the file that info describes.
func requireSameFile(f *os.File, info fs.FileInfo) (*os.File, error) {
	current, err := f.Stat()
	if err == nil && !os.SameFile(current, info) {
		err = &fs.PathError{Op: "open", Path: f.Name(), Err: errors.New("it was replaced at the same moment")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// recordOutputIfNew records that the project begins a file of lines, unless the file exists: see
// checkAppendToOwnOutput.
func (c *pathConfinement) recordOutputIfNew(name string, dir jsonlDir) error {
	if c == nil || c.isKnownOutput(name) {
		return nil
	}
	if _, err := dir.lstat(filepath.Base(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return c.recordOutput(name)
}

// checkAppendToOwnOutput refuses to append to a file that is not an output of the project. A file
// that the project has begun is one. So is a file in the project's own directory that
// begins with a line of output: projects of older versions began files without a
// record.
func (c *pathConfinement) checkAppendToOwnOutput(name string, f *os.File, size int64) error {
	if c == nil || size == 0 || c.isKnownOutput(name) {
		return nil
	}
	head := make([]byte, len(recordPrefix))
	if n, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	} else if datadir.IsWithin(name, c.projectDir) && string(head[:n]) == recordPrefix {
		return nil
	}
	return usage.Errorf("output.jsonl: %s exists, and this project, which came by the API, has not written it: "+
		"move it away, name another file, or put the project file into %s by hand", name, c.projectFilesDir)
}

// claimWARCDir refuses a directory with an unfinished WARC file of another project:
// opening the directory would cut such files, and remove those without a record.
func (c *pathConfinement) claimWARCDir(name string, dir *os.Root) error {
	if c == nil || datadir.IsWithin(name, c.projectDir) || c.isKnownOutput(name) {
		return nil
	}
	unfinished, err := fs.Glob(dir.FS(), "*.warc.gz.open")
	if err != nil {
		return err
	}
	if len(unfinished) > 0 {
		return usage.Errorf("output.warc: %s holds %s, and this project, which came by the API, has not written it: "+
			"move it away, name another directory, or put the project file into %s by hand", name, unfinished[0], c.projectFilesDir)
	}
	return c.recordOutput(name)
}

// openOutputDir opens a directory for writing. Below the directory that confines the
// project it follows no symbolic link, and creates missing directories for files of the
// given mode; with mode 0 it creates none.
func (c *pathConfinement) openOutputDir(name string, createMode fs.FileMode) (*os.Root, error) {
	base := c.outputRoot
	if datadir.IsWithin(name, c.projectDir) {
		base = c.projectDir
	}
	rel, err := filepath.Rel(base, name)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errOutsideRoot}
	}
	dir, err := os.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		if base != c.projectDir {
			err = c.refuseDaemonDir(dir)
		}
		if err == nil && part != "." {
			dir, err = enterSubdir(dir, part, createMode)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", name, err), dir.Close())
		}
	}
	if base != c.projectDir {
		err = c.refuseDaemonDir(dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), dir.Close())
	}
	return dir, nil
}

// enterSubdir opens the directory called name in dir, and closes dir. It follows no
// symbolic link. If it returns an error, it also returns dir, still open.
func enterSubdir(dir *os.Root, name string, createMode fs.FileMode) (*os.Root, error) {
	next, err := openOrCreateSubdir(dir, name, createMode)
	if err != nil {
		return dir, err
	}
	return next, dir.Close()
}

// openOrCreateSubdir opens a directory in another. It creates a missing one for files of the
// mode create, unless create is 0.
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
func (c *pathConfinement) refuseDaemonDir(dir *os.Root) error {
	dirInfo, err := dir.Stat(".")
	if err != nil {
		return err
	}
	for _, daemonDir := range []string{c.protectedDataDir, c.projectFilesDir} {
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
