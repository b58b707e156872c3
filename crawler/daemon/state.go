package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/disk"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/internal/yamllimit"
)

// The files of a crawl's directory that are its own. Others are never touched.
const (
	storeFile   = "frontier.db" // the frontier, by storage/bolt
	robotsFile  = "robots.db"   // what was learnt of robots.txt files, likewise
	redisFile   = "redis"       // in place of these: the state is in Redis, under this prefix
	projectFile = "crawl.yaml"  // the project as it was started last: --resume needs no more
	outputFile  = "pages.jsonl" // the output, if no other place is named
	bodiesDir   = "bodies"      // the bodies of pages, if they are wanted
	ledgerDir   = "ledger"      // what permitted each request
	lockFile    = "lock"        // held by the process that crawls from here
)

// A stateDir is the directory that keeps a crawl.
type stateDir string

func (d stateDir) path(file string) string { return filepath.Join(string(d), file) }

// lock makes the directory, and keeps others from crawling from it.
func (d stateDir) lock() (*directoryLock, error) {
	if err := os.MkdirAll(string(d), privateDirMode); err != nil {
		return nil, usage.Errorf("cannot make the data directory: %w", err)
	}
	dir, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, usage.Errorf("cannot use the data directory: %w", err)
	}
	h, err := lockDirectory(dir, lockFile, "the data directory", "--data", "")
	return h, errors.Join(err, dir.Close())
}

// isOwnStateFile reports whether name is one of the crawl's own files of state, what writeFileAtomic
// makes while it replaces one, or in the ledger's directory.
func (d stateDir) isOwnStateFile(name string) bool {
	path, err := filepath.Abs(name)
	ledger, err2 := filepath.Abs(d.path(ledgerDir))
	if errors.Join(err, err2) != nil {
		return false
	}
	path = strings.TrimSuffix(path, replacementSuffix)
	absDir := filepath.Dir(ledger)
	for _, file := range []string{storeFile, robotsFile, redisFile, outputLengthsFile, projectFile, lockFile} {
		if path == filepath.Join(absDir, file) {
			return true
		}
	}
	return isWithin(path, ledger)
}

// hasCrawl reports whether a crawl was begun here.
func (d stateDir) hasCrawl() (bool, error) {
	for _, file := range []string{storeFile, redisFile} {
		info, err := os.Stat(d.path(file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || info.Size() > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// requireCrawl returns an error unless a crawl was begun here, for commands
// that look into one.
func (d stateDir) requireCrawl() error {
	if hasCrawl, err := d.hasCrawl(); err != nil || !hasCrawl {
		return errors.Join(usage.Errorf("%s holds no crawl: name the directory of one with --data", d), err)
	}
	return nil
}

// checkResumeOrFresh returns an error unless the directory is fit for a crawl that goes on,
// or that starts anew, or, if neither is said, for one that must find nothing
// here.
func (d stateDir) checkResumeOrFresh(resume, startFresh bool) error {
	hasCrawl, err := d.hasCrawl()
	switch {
	case err != nil:
		return fmt.Errorf("cannot look into the data directory: %w", err)
	case resume && !hasCrawl:
		return d.newNoCrawlError()
	case hasCrawl && !resume && !startFresh:
		return usage.Errorf("%s already holds a crawl: --resume goes on with it, --fresh starts anew and moves its files aside", d)
	}
	return nil
}

func (d stateDir) newNoCrawlError() error {
	return usage.Errorf("%s holds no crawl to go on with: leave out --resume to start one (with --fresh if files of an earlier one are in the way), or name another directory with --data", d)
}

// moveOldCrawl moves the crawl's files into a directory of their own beside the
// new ones, with the rotated files of its output. Nothing is deleted.
func (d stateDir) moveOldCrawl(now time.Time, rotatedOutputs []string) error {
	files := []string{storeFile, robotsFile, redisFile, outputLengthsFile, projectFile, outputFile, bodiesDir, ledgerDir}
	for _, name := range rotatedOutputs {
		files = append(files, filepath.Base(name))
	}
	movedDir := ""
	for _, file := range files {
		if _, err := os.Lstat(d.path(file)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if movedDir == "" {
			var err error
			if movedDir, err = os.MkdirTemp(string(d), "before-"+now.UTC().Format("20060102T150405Z")+"-"); err != nil {
				return err
			}
		}
		if err := os.Rename(d.path(file), filepath.Join(movedDir, file)); err != nil {
			return err
		}
	}
	return nil
}

// saveProject writes p for a later --resume. The text records whether p came by the API of
// a daemon.
func (d stateDir) saveProject(p project.Project, createdByAPI bool) error {
	text, err := encodeProject(p)
	if createdByAPI {
		text = append([]byte(apiCreatedProjectHeader), text...)
	}
	if err == nil {
		err = writeFileAtomic(d.path(projectFile), text)
	}
	if err != nil {
		return fmt.Errorf("cannot keep the project: %w", err)
	}
	return nil
}

// encodeProject returns p as save writes it: --resume may be called from elsewhere. A project
// of which --resume would read no more than a part is refused.
func encodeProject(p project.Project) ([]byte, error) {
	var err error
	p.ForEachFilePath(func(_ project.FilePathField, _ string, path *string) *project.FieldProblem {
		full, e := filepath.Abs(*path)
		*path, err = full, errors.Join(err, e)
		return nil
	})
	text, e := yaml.Marshal(p)
	if len(text) > project.MaxFileSize {
		e = usage.Errorf("the project is longer than 1 MiB as --resume reads it; put long lists of seeds into seed_files")
	} else if _, exceeded := yamllimit.Tokenize(string(text), ""); exceeded != nil {
		e = usage.Errorf("--resume could not read the project: %s", exceeded.Problem)
	}
	return text, errors.Join(err, e)
}

// replacementSuffix ends the name of a file that will replace another.
const replacementSuffix = ".new"

// writeFileAtomic writes a file so that a crash, or a power cut, leaves the old one or
// the new one; when it returns, the new one.
func writeFileAtomic(name string, text []byte) error {
	temporary := name + replacementSuffix
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, name); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(name))
}

// requireLocalState returns an error if the state of the directory's crawl is in Redis,
// for what needs it in files.
func (d stateDir) requireLocalState() error {
	if _, err := os.Stat(d.path(redisFile)); err == nil {
		return usage.Errorf("the state of the crawl in %s is in Redis: see store.redis of its project", d)
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// isWithin reports whether a file is in a directory, or is it.
func isWithin(file, dir string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(rel)
}

// apiCreatedProjectHeader begins the copy, in the project's directory, of a project that came by the
// API.
const apiCreatedProjectHeader = "# This project came by the API of a daemon.\n"

// The files of a daemon's directory.
const (
	daemonStateFile = "daemon.json" // what it was told: wanted states, brakes
	auditFile       = "audit.jsonl" // who changed what
	projectsDir     = "projects"    // the state of each project, in a directory of its name
	deletedDir      = "deleted"     // of those that were deleted
)
