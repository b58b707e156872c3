package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/goccy/go-yaml"
)

// The files of a crawl's directory that are its own. Others are never touched.
const (
	storeFile   = "frontier.db" // the frontier, by storage/bolt
	robotsFile  = "robots.db"   // what was learnt of robots.txt files, likewise
	projectFile = "crawl.yaml"  // the project as it was started last: --resume needs no more
	outputFile  = "pages.jsonl" // the output, if no other place is named
)

// A stateDir is the directory that keeps a crawl.
type stateDir string

func (d stateDir) path(file string) string { return filepath.Join(string(d), file) }

// holdsCrawl reports whether a crawl was begun here.
func (d stateDir) holdsCrawl() (bool, error) {
	_, err := os.Stat(d.path(storeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// prepare makes the directory fit for a crawl that goes on, or that starts
// anew, or, if neither is said, for one that must find nothing here.
func (d stateDir) prepare(resume, fresh bool, now time.Time) error {
	holds, err := d.holdsCrawl()
	switch {
	case err != nil:
		return fmt.Errorf("cannot look into the data directory: %w", err)
	case resume && !holds:
		return d.nothingHere()
	case holds && !resume && !fresh:
		return usage("%s already holds a crawl: --resume goes on with it, --fresh starts anew and moves its files aside", d)
	case fresh:
		return d.moveAside(now)
	}
	return os.MkdirAll(string(d), 0o755)
}

func (d stateDir) nothingHere() error {
	return usage("%s holds no crawl to go on with: leave out --resume to start one, or name another directory with --data", d)
}

// moveAside moves the crawl's files into a directory of their own beside the
// new ones. Nothing is deleted.
func (d stateDir) moveAside(now time.Time) error {
	aside := d.path("before-" + now.UTC().Format("20060102T150405Z"))
	if err := os.MkdirAll(string(d), 0o755); err != nil {
		return err
	}
	for _, file := range []string{storeFile, robotsFile, projectFile, outputFile} {
		if _, err := os.Lstat(d.path(file)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.MkdirAll(aside, 0o755); err != nil {
			return err
		}
		if err := os.Rename(d.path(file), filepath.Join(aside, file)); err != nil {
			return err
		}
	}
	return nil
}

// output returns where the output of p goes.
func (d stateDir) output(p Project) string {
	if p.Output.JSONL == "" {
		return d.path(outputFile)
	}
	return p.Output.JSONL
}

// save keeps p for a later --resume, which may be called from elsewhere.
func (d stateDir) save(p Project) error {
	var err error
	abs := func(name string) string {
		if name == "" || name == "-" {
			return name
		}
		full, e := filepath.Abs(name)
		err = errors.Join(err, e)
		return full
	}
	p.Store.Path, p.Output.JSONL = abs(p.Store.Path), abs(p.Output.JSONL)
	files := make([]string, len(p.SeedFiles))
	for i, name := range p.SeedFiles {
		files[i] = abs(name)
	}
	p.SeedFiles = files
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(p)
	if err != nil {
		return err
	}
	return writeWhole(d.path(projectFile), text)
}

// writeWhole writes a file so that a crash leaves the old one or the new one.
func writeWhole(name string, text []byte) error {
	temporary := name + ".new"
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, name)
}
