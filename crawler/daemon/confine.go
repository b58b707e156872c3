package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/decorum-crawler/decorum/internal/disk"
)

// A confinement holds the files that a project names to two directories. It is for
// projects that come by the API: a caller with a token of the role operate may write a
// project, but not read or write other files of the daemon's user. Names are checked when
// the project is, and again whenever a file is opened, by os.Root: what changes in
// between, a symbolic link for example, does not lead out. A nil *confinement does not
// confine.
type confinement struct {
	output string // outputs are below it, or below home
	files  string // what is read is below it
	home   string // the project's own directory
	data   string // the daemon's directory: nothing is written there but below home
	folder string // of project files: nothing is written to it

	private bool                    // the project may reach into private networks
	known   func(path string) bool  // whether the project has begun the file
	note    func(path string) error // notes on the disk that the project begins the file
}

// errEscapes refuses a path that is not below the directory that holds it.
var errEscapes = errors.New("it is outside of the directory that projects of the API are held to")

// admits reports whether c lets a project use a path, as far as the name tells.
func (c *confinement) admits(use pathUse, path string) bool {
	if use == inputFile {
		return within(path, c.files)
	}
	return within(path, c.home) || within(path, c.output)
}

// open opens a file to be read. In a confinement it is a regular file below the
// directory for such files; symbolic links may lead from one place there to another.
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
	// A pipe, which open would wait for, is refused before; another file in its place
	// is noticed after.
	info, err := root.Stat(rel)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	f, err := root.Open(rel)
	if err != nil {
		return nil, err
	}
	return mustBeSame(f, info)
}

// mustBeSame returns f, unless it is another file than info is of.
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

// begin notes that a file of lines is begun, unless it is there already: see mayContinue.
func (c *confinement) begin(name string, dir lineDir) error {
	if c == nil || c.known(name) {
		return nil
	}
	if _, err := dir.lstat(filepath.Base(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return c.note(name)
}

// mayContinue refuses to append to a file that is not an output of the project. It is
// one if the project has begun it. Before that was noted, projects began files too: what
// is in the project's own directory and begins with a line of output is one of these.
func (c *confinement) mayContinue(name string, f *os.File, size int64) error {
	if c == nil || size == 0 || c.known(name) {
		return nil
	}
	head := make([]byte, len(lineHead))
	if n, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	} else if within(name, c.home) && string(head[:n]) == lineHead {
		return nil
	}
	return usage("output.jsonl: %s exists, and this project, which came by the API, has not written it: "+
		"move it away, name another file, or put the project file into %s by hand", name, c.folder)
}

// mayArchive refuses a directory with an unfinished WARC file that is not of the project:
// to open the directory cuts such files, and removes those that hold no record.
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

// directory opens a directory to be written to. Below the one that holds the project,
// no symbolic link is followed, and each missing directory is made for files of a mode; 0:
// none is made.
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

// stepInto opens the directory of that name in dir, and closes dir. It follows no symbolic
// link. With an error, it returns dir, open.
func stepInto(dir *os.Root, name string, create fs.FileMode) (*os.Root, error) {
	next, err := openDirectory(dir, name, create)
	if err != nil {
		return dir, err
	}
	return next, dir.Close()
}

// openDirectory opens a directory in another, and makes it for files of the mode create,
// unless that is 0, if there is none.
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
		err := errors.New("it is no directory; a symbolic link is not followed here")
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

// mayWriteTo refuses the daemon's own directories, by whatever name they were reached.
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
