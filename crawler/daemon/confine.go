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

	"github.com/decorum-crawler/decorum/internal/disk"
)

// A confinement restricts the files that a project names to two directories. It applies
// to projects that come by the API: a caller with a token of the role operate may write
// a project, but must not read or write other files of the daemon's user. Names are
// checked with the project, and os.Root checks them again at each open, so that a later
// change, such as a symbolic link, does not lead out. A nil *confinement allows
// everything.
type confinement struct {
	output string // outputs are below it, or below home
	files  string // inputs are below it
	home   string // the project's own directory
	data   string // the daemon's directory: the project writes there only below home
	folder string // of project files: the project writes nothing to it

	private bool                    // the project may reach into private networks
	known   func(path string) bool  // reports whether the project has begun the file
	note    func(path string) error // records on the disk that the project begins the file
}

// errEscapes refuses a path that is not below the directory that holds it.
var errEscapes = errors.New("it is outside of the directory that projects of the API may use")

// admits reports whether c lets a project use a path, judged by its name.
func (c *confinement) admits(use pathKind, path string) bool {
	if use == inputFile {
		return within(path, c.files)
	}
	return within(path, c.home) || within(path, c.output)
}

// open opens a file for reading. In a confinement the file must be a regular file below
// the input directory; symbolic links may lead from one place there to another.
func (c *confinement) open(name string) (*os.File, error) {
	if c == nil {
		return os.Open(name)
	}
	rel, err := filepath.Rel(c.files, name)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errEscapes}
	}
	root, err := os.OpenRoot(c.files)
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
	return mustBeSame(f, info)
}

// mustBeSame returns f, or an error if f is not the file that info describes.
func mustBeSame(f *os.File, info fs.FileInfo) (*os.File, error) {
	now, err := f.Stat()
	if err == nil && !os.SameFile(now, info) {
		err = &fs.PathError{Op: "open", Path: f.Name(), Err: errors.New("it was replaced at the same moment")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// begin records that the project begins a file of lines, unless the file exists: see
// mayContinue.
func (c *confinement) begin(name string, dir jsonlDir) error {
	if c == nil || c.known(name) {
		return nil
	}
	if _, err := dir.lstat(filepath.Base(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return c.note(name)
}

// mayContinue refuses to append to a file that is not an output of the project. A file
// that the project has begun is one. So is a file in the project's own directory that
// begins with a line of output: projects of older versions began files without a
// record.
func (c *confinement) mayContinue(name string, f *os.File, size int64) error {
	if c == nil || size == 0 || c.known(name) {
		return nil
	}
	head := make([]byte, len(recordPrefix))
	if n, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	} else if within(name, c.home) && string(head[:n]) == recordPrefix {
		return nil
	}
	return usage("output.jsonl: %s exists, and this project, which came by the API, has not written it: "+
		"move it away, name another file, or put the project file into %s by hand", name, c.folder)
}

// mayArchive refuses a directory with an unfinished WARC file of another project:
// opening the directory would cut such files, and remove those without a record.
func (c *confinement) mayArchive(name string, dir *os.Root) error {
	if c == nil || within(name, c.home) || c.known(name) {
		return nil
	}
	unfinished, err := fs.Glob(dir.FS(), "*.warc.gz.open")
	if err != nil {
		return err
	}
	if len(unfinished) > 0 {
		return usage("output.warc: %s holds %s, and this project, which came by the API, has not written it: "+
			"move it away, name another directory, or put the project file into %s by hand", name, unfinished[0], c.folder)
	}
	return c.note(name)
}

// directory opens a directory for writing. Below the directory that confines the
// project it follows no symbolic link, and creates missing directories for files of the
// given mode; with mode 0 it creates none.
func (c *confinement) directory(name string, create fs.FileMode) (*os.Root, error) {
	base := c.output
	if within(name, c.home) {
		base = c.home
	}
	rel, err := filepath.Rel(base, name)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errEscapes}
	}
	dir, err := os.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		if base != c.home {
			err = c.mayWriteTo(dir)
		}
		if err == nil && part != "." {
			dir, err = stepInto(dir, part, create)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", name, err), dir.Close())
		}
	}
	if base != c.home {
		err = c.mayWriteTo(dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), dir.Close())
	}
	return dir, nil
}

// stepInto opens the directory called name in dir, and closes dir. It follows no
// symbolic link. If it returns an error, it also returns dir, still open.
func stepInto(dir *os.Root, name string, create fs.FileMode) (*os.Root, error) {
	next, err := openDirectory(dir, name, create)
	if err != nil {
		return dir, err
	}
	return next, dir.Close()
}

// openDirectory opens a directory in another. It creates a missing one for files of the
// mode create, unless create is 0.
func openDirectory(dir *os.Root, name string, create fs.FileMode) (*os.Root, error) {
	info, err := dir.Lstat(name)
	if create != 0 && errors.Is(err, fs.ErrNotExist) {
		err = dir.Mkdir(name, privateDir)
		if err == nil && create != privateFile {
			err = dir.Chmod(name, disk.DirMode(create)) // whatever the umask
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
	now, err := next.Stat(".")
	if err == nil && !os.SameFile(now, info) {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("it was replaced at the same moment")}
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

// mayWriteTo refuses the daemon's own directories, whatever path led to them.
func (c *confinement) mayWriteTo(dir *os.Root) error {
	here, err := dir.Stat(".")
	if err != nil {
		return err
	}
	for _, own := range []string{c.data, c.folder} {
		info, err := os.Stat(own)
		if err != nil {
			return err
		}
		if os.SameFile(here, info) {
			return errors.New("it is where the daemon keeps its own files, or project files")
		}
	}
	return nil
}
