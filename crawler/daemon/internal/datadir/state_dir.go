package datadir

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
	StoreFile   = "frontier.db" // the frontier, by storage/bolt
	RobotsFile  = "robots.db"   // what was learnt of robots.txt files, likewise
	redisFile   = "redis"       // in place of these: the state is in Redis, under this prefix
	ProjectFile = "crawl.yaml"  // the project as it was started last: --resume needs no more
	OutputFile  = "pages.jsonl" // the output, if no other place is named
	BodiesDir   = "bodies"      // the bodies of pages, if they are wanted
	LedgerDir   = "ledger"      // what permitted each request
	LockFile    = "lock"        // held by the process that crawls from here
)

// A StateDir is the directory that keeps a crawl.
type StateDir string

func (d StateDir) Path(file string) string { return filepath.Join(string(d), file) }

// Lock makes the directory, and keeps others from crawling from it.
func (d StateDir) Lock() (*DirectoryLock, error) {
	if err := os.MkdirAll(string(d), PrivateDirMode); err != nil {
		return nil, usage.Errorf("cannot make the data directory: %w", err)
	}
	dir, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, usage.Errorf("cannot use the data directory: %w", err)
	}
	h, err := LockDirectory(dir, LockFile, "the data directory", "--data", "")
	if err := errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	h.stateDir = d
	removeStaleSocket(h.staleSocket)
	return h, nil
}

// IsOwnStateFile reports whether name is one of the crawl's own files of state, what WriteFileAtomic
// makes while it replaces one, or in the ledger's directory.
func (d StateDir) IsOwnStateFile(name string) bool {
	path, err := filepath.Abs(name)
	ledger, err2 := filepath.Abs(d.Path(LedgerDir))
	if errors.Join(err, err2) != nil {
		return false
	}
	path = strings.TrimSuffix(path, replacementSuffix)
	absDir := filepath.Dir(ledger)
	for _, file := range []string{StoreFile, RobotsFile, redisFile, outputLengthsFile, ProjectFile, LockFile} {
		if path == filepath.Join(absDir, file) {
			return true
		}
	}
	return IsWithin(path, ledger)
}

// HasCrawl reports whether a crawl was begun here.
func (d StateDir) HasCrawl() (bool, error) {
	for _, file := range []string{StoreFile, redisFile} {
		info, err := os.Stat(d.Path(file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || info.Size() > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// RequireCrawl returns an error unless a crawl was begun here, for commands
// that look into one.
func (d StateDir) RequireCrawl() error {
	if hasCrawl, err := d.HasCrawl(); err != nil || !hasCrawl {
		return errors.Join(usage.Errorf("%s holds no crawl: name the directory of one with --data", d), err)
	}
	return nil
}

// CheckResumeOrFresh returns an error unless the directory is fit for a crawl that goes on,
// or that starts anew, or, if neither is said, for one that must find nothing
// here.
func (d StateDir) CheckResumeOrFresh(resume, startFresh bool) error {
	hasCrawl, err := d.HasCrawl()
	switch {
	case err != nil:
		return fmt.Errorf("cannot look into the data directory: %w", err)
	case resume && !hasCrawl:
		return d.NewNoCrawlError()
	case hasCrawl && !resume && !startFresh:
		return usage.Errorf("%s already holds a crawl: --resume goes on with it, --fresh starts anew and moves its files aside", d)
	}
	return nil
}

func (d StateDir) NewNoCrawlError() error {
	return usage.Errorf("%s holds no crawl to go on with: leave out --resume to start one (with --fresh if files of an earlier one are in the way), or name another directory with --data", d)
}

// MoveOldCrawl moves the crawl's files into a directory of their own beside the
// new ones, with the rotated files of its output. Nothing is deleted.
func (d StateDir) MoveOldCrawl(now time.Time, rotatedOutputs []string) error {
	files := []string{StoreFile, RobotsFile, redisFile, outputLengthsFile, ProjectFile, OutputFile, BodiesDir, LedgerDir}
	files = append(files, rotatedOutputs...)
	movedDir := ""
	for _, file := range files {
		if _, err := os.Lstat(d.Path(file)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if movedDir == "" {
			var err error
			if movedDir, err = os.MkdirTemp(string(d), "before-"+now.UTC().Format("20060102T150405Z")+"-"); err != nil {
				return err
			}
		}
		if err := os.Rename(d.Path(file), filepath.Join(movedDir, file)); err != nil {
			return err
		}
	}
	return nil
}

// SaveProject writes p for a later --resume. The text records whether p came by the API of
// a daemon.
func (d StateDir) SaveProject(p project.Project, createdByAPI bool) error {
	text, err := EncodeProject(p)
	if createdByAPI {
		text = append([]byte(APICreatedProjectHeader), text...)
	}
	if err == nil {
		err = WriteFileAtomic(d.Path(ProjectFile), text)
	}
	if err != nil {
		return fmt.Errorf("cannot keep the project: %w", err)
	}
	return nil
}

// EncodeProject returns p as save writes it: --resume may be called from elsewhere. A project
// of which --resume would read no more than a part is refused.
func EncodeProject(p project.Project) ([]byte, error) {
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

// RequireLocalState returns an error if the state of the directory's crawl is in Redis,
// for what needs it in files.
func (d StateDir) RequireLocalState() error {
	if _, err := os.Stat(d.Path(redisFile)); err == nil {
		return usage.Errorf("the state of the crawl in %s is in Redis: see store.redis of its project", d)
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// IsWithin reports whether a file is in a directory, or is it.
func IsWithin(file, dir string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(rel)
}

// APICreatedProjectHeader begins the copy, in the project's directory, of a project that came by the
// API.
const APICreatedProjectHeader = "# This project came by the API of a daemon.\n"

// The files of a daemon's directory.
const (
	DaemonStateFile = "daemon.json" // what it was told: wanted states, brakes
	AuditFile       = "audit.jsonl" // who changed what
	ProjectsDir     = "projects"    // the state of each project, in a directory of its name
	DeletedDir      = "deleted"     // of those that were deleted
)

// IsDaemonDir reports whether d is the directory of a daemon.
func (d StateDir) IsDaemonDir() bool {
	_, err := os.Stat(d.Path(DaemonStateFile))
	return err == nil
}

// DaemonDir returns the directory of the daemon to which d, the directory of a project's
// state, belongs. isProject is false for any other directory.
func (d StateDir) DaemonDir() (daemon StateDir, isProject bool) {
	daemon = StateDir(d.Path(filepath.Join("..", "..")))
	return daemon, filepath.Base(filepath.Dir(filepath.Clean(string(d)))) == ProjectsDir && daemon.IsDaemonDir()
}

// BaseName returns the last element of the path of the directory.
func (d StateDir) BaseName() string { return filepath.Base(filepath.Clean(string(d))) }

// ProjectDirs returns the directories of the state of a daemon's projects, by their names.
func (d StateDir) ProjectDirs() (map[string]StateDir, error) {
	entries, err := os.ReadDir(d.Path(ProjectsDir))
	dirs := map[string]StateDir{}
	for _, e := range entries {
		if e.IsDir() {
			dirs[e.Name()] = StateDir(d.Path(filepath.Join(ProjectsDir, e.Name())))
		}
	}
	return dirs, err
}

// The modes of the files and directories that decorum creates: only the daemon's user
// can read them. Existing ones keep their modes.
const (
	PrivateDirMode  fs.FileMode = 0o700
	PrivateFileMode             = disk.PrivateMode
)
