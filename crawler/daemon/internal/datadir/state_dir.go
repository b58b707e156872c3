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
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// The crawl's own files in its directory. Other files there are never touched.
const (
	StoreFile   = "frontier.db" // the frontier, in the format of storage/bolt
	RobotsFile  = "robots.db"   // the robots.txt files, likewise
	redisFile   = "redis"       // instead of these two, if the state is in Redis: holds the prefix there
	ProjectFile = "crawl.yaml"  // the project of the last run, for --resume
	OutputFile  = "pages.jsonl" // the default output
	BodiesDir   = "bodies"      // the bodies of pages, if the project writes them
	LedgerDir   = "ledger"      // records what permitted each request
	LockFile    = "lock"        // locked by the process that crawls
)

// A StateDir is the path of the directory that holds the state of a crawl or of a daemon.
type StateDir string

// Path returns the path of a file in the directory.
func (d StateDir) Path(file string) string { return filepath.Join(string(d), file) }

// Lock creates the directory if it does not exist, and locks it for this process. It returns an error if
// another process has locked it.
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

// IsOwnStateFile reports whether the path name is one of the crawl's own state files, the temporary file of
// WriteFileAtomic for one, or in the ledger's directory.
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

// Contains reports whether the file at path name is directly in the directory.
func (d StateDir) Contains(name string) bool {
	parent, err := filepath.Abs(filepath.Dir(name))
	dir, err2 := filepath.Abs(string(d))
	return errors.Join(err, err2) == nil && parent == dir
}

// HasCrawl reports whether the directory holds the state of a crawl, in files or in Redis.
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

// RequireCrawl returns an error unless the directory holds a crawl, for commands that inspect one.
func (d StateDir) RequireCrawl() error {
	if hasCrawl, err := d.HasCrawl(); err != nil || !hasCrawl {
		return errors.Join(usage.Errorf("%s holds no crawl: name the directory of one with --data", d), err)
	}
	return nil
}

// CheckResumeOrFresh returns an error unless the directory can be used for a crawl of p: with resume it must
// hold a crawl; with startFresh it may hold one; with neither it must hold none. In the last case the error
// says how p differs from the project of that crawl.
func (d StateDir) CheckResumeOrFresh(p project.Project, resume, startFresh bool) error {
	hasCrawl, err := d.HasCrawl()
	switch {
	case err != nil:
		return fmt.Errorf("cannot look into the data directory: %w", err)
	case resume && !hasCrawl:
		return d.NewNoCrawlError()
	case hasCrawl && !resume && !startFresh:
		return usage.Errorf("%s already holds a crawl: --resume continues it, --fresh moves its files aside and "+
			"starts a new one%s", d, d.differencesText(p))
	}
	return nil
}

// NewNoCrawlError returns the error of --resume for a directory without a crawl.
func (d StateDir) NewNoCrawlError() error {
	return usage.Errorf("%s holds no crawl to resume: leave out --resume to start one (with --fresh if files of an "+
		"earlier one are in the way), or name another directory with --data", d)
}

// MoveOldCrawl moves the crawl's files, and the files of its output that rotatedOutputs names, into a new
// subdirectory called before-TIME-…. It deletes nothing. It leaves the lock file.
func (d StateDir) MoveOldCrawl(now time.Time, rotatedOutputs []string) error {
	files := []string{StoreFile, RobotsFile, redisFile, outputLengthsFile, ProjectFile,
		OutputFile, BodiesDir, LedgerDir}
	files = append(files, rotatedOutputs...)
	movedDir := ""
	for _, file := range files {
		if _, err := os.Lstat(d.Path(file)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		// Create the subdirectory for the first file, so that an empty directory stays empty.
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

// SaveProject writes p to ProjectFile, for a later --resume. The text records whether p came by the API of
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
		return fmt.Errorf("cannot save the project: %w", err)
	}
	return nil
}

// EncodeProject returns p as SaveProject writes it. Its paths are absolute, because --resume may run in
// another directory. It returns an error for a project that --resume could not read, because the text is
// too long or too deep.
func EncodeProject(p project.Project) ([]byte, error) {
	var err error
	p.ForEachFilePath(func(_ project.FilePathField, _ string, path *string) {
		full, e := filepath.Abs(*path)
		*path, err = full, errors.Join(err, e)
	})
	text, e := yaml.Marshal(p)
	if len(text) > project.MaxFileSize {
		e = usage.Errorf("the project is longer than 1 MiB as --resume reads it; put long lists of seeds into " +
			"seed_files")
	} else if _, exceeded := yamllimit.Tokenize(string(text), ""); exceeded != nil {
		e = usage.Errorf("--resume could not read the project: %s", exceeded.Problem)
	}
	return text, errors.Join(err, e)
}

// RequireLocalState returns an error if the state of the directory's crawl is in Redis, for callers that
// need it in files.
func (d StateDir) RequireLocalState() error {
	if _, err := os.Stat(d.Path(redisFile)); err == nil {
		return usage.Errorf("the state of the crawl in %s is in Redis: see store.redis of its project", d)
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// IsWithin reports whether the path file is dir or below it. It looks only at the names.
func IsWithin(file, dir string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(rel)
}

// APICreatedProjectHeader is the first line of ProjectFile for a project that came by the API of a daemon.
const APICreatedProjectHeader = "# This project came by the API of a daemon.\n"

// The files of a daemon's directory.
const (
	DaemonStateFile = "daemon.json" // the desired states of projects, and the brakes
	AuditFile       = "audit.jsonl" // the changes that callers of the API made
	ProjectsDir     = "projects"    // the state of each project, in a directory with its name
	DeletedDir      = "deleted"     // the state and the files of deleted projects
)

// IsDaemonDir reports whether d is the directory of a daemon.
func (d StateDir) IsDaemonDir() bool {
	_, err := os.Stat(d.Path(DaemonStateFile))
	return err == nil
}

// DaemonProject returns the directory of the daemon to which d belongs, and the name of the project. The
// name is empty if d is not the directory of a daemon's project.
func (d StateDir) DaemonProject() (daemon StateDir, name string) {
	// The path may be relative, such as ".", or lead through symbolic links. Look at the path itself
	// first, because a link may stand in for the directory of a project.
	paths := []string{string(d)}
	if full, err := filepath.Abs(string(d)); err == nil {
		paths = append(paths, full)
		if target, err := filepath.EvalSymlinks(full); err == nil {
			paths = append(paths, target)
		}
	}
	for _, path := range paths {
		projects, name := filepath.Split(filepath.Clean(path))
		projects = filepath.Clean(projects)
		daemon := StateDir(filepath.Dir(projects))
		if filepath.Base(projects) == ProjectsDir && daemon.IsDaemonDir() {
			return daemon, name
		}
	}
	return "", ""
}

// StoreFiles returns the names of the store files that the directory has of its own. A project of a daemon
// shares the robots.txt files of the daemon, whose directory has no frontier. StoreFiles returns an error
// if there are no such files, or if the state is in Redis.
func (d StateDir) StoreFiles() (files []string, err error) {
	hasCrawl, err := d.HasCrawl()
	if err == nil && !hasCrawl && !d.IsDaemonDir() {
		err = d.RequireCrawl()
	}
	if err := errors.Join(err, d.RequireLocalState()); err != nil {
		return nil, err
	}
	if hasCrawl {
		files = append(files, StoreFile)
	}
	if _, project := d.DaemonProject(); project == "" {
		files = append(files, RobotsFile)
	}
	return files, nil
}

// HostNames returns the hosts of the crawl in the directory whose names begin with prefix, at most limit, for
// the completion of a shell. It takes no lock and changes nothing. It returns an error if a process runs the
// crawl, and no names if the directory holds no crawl or its state is in Redis.
func (d StateDir) HostNames(prefix string, limit int) ([]string, error) {
	names, err := bolt.ReadHostNames(d.Path(StoreFile), prefix, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

// ProjectDirs returns the directories with the state of a daemon's projects, by project name.
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

// The modes of the files and directories that decorum creates: only its user can read them. Existing ones
// keep their modes.
const (
	PrivateDirMode  fs.FileMode = 0o700
	PrivateFileMode             = disk.PrivateMode
)
