package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// Stores keep the state of a crawl. What is known of robots.txt files has one of
// its own, which crawls of one process share.
type crawlStores struct {
	frontier, robots storeInspectorImporter
	isRemote         bool // in Redis: others work on them too, and they may be out of reach
}

// openStores opens the state of the crawl, which must be whole.
func openStores(p project.Project, opts bolt.Options) (crawlStores, error) {
	s, err := openStoresAllowingPartialImport(p, opts)
	if err != nil {
		return crawlStores{}, err
	}
	if err := requireCompleteImport(s.frontier); err != nil {
		return crawlStores{}, errors.Join(err, s.Close())
	}
	return s, nil
}

// openStoresAllowingPartialImport opens the files of the crawl's directory, or what it has in Redis.
func openStoresAllowingPartialImport(p project.Project, opts bolt.Options) (s crawlStores, err error) {
	if p.Store.Redis.IsUsed() {
		return openRedisStores(p, os.Open, opts)
	}
	dir := stateDir(p.Store.Path)
	if err := dir.requireLocalState(); err != nil {
		return crawlStores{}, err
	}
	robotsOpts := opts
	robotsOpts.ListOutputFiles = nil // the frontier keeps the files
	if s.robots, err = openBoltStore(dir.robotsStorePath(), robotsOpts); err != nil {
		return crawlStores{}, err
	}
	if s.frontier, err = openBoltFrontier(dir.path(storeFile), opts, s.robots); err != nil {
		return crawlStores{}, errors.Join(err, s.robots.Close())
	}
	return s, nil
}

// openBoltFrontier opens the file of a frontier. What was learnt of robots.txt files is on
// the disk before the frontier says that they have been asked for: else a crash between
// the two would have a crawl wait for a redirect of a robots.txt that was followed.
func openBoltFrontier(file string, opts bolt.Options, robots storeInspectorImporter) (storeInspectorImporter, error) {
	beforeWrite := opts.BeforeWrite
	opts.BeforeWrite = func() error {
		err := robots.Flush(context.Background())
		if err == nil && beforeWrite != nil {
			err = beforeWrite()
		}
		return err
	}
	return openBoltStore(file, opts)
}

// robotsStorePath is the file that keeps what is known of robots.txt files: the crawl's own,
// or, in the directory of a daemon's project, that of all its projects.
func (d stateDir) robotsStorePath() string {
	daemon := stateDir(d.path(filepath.Join("..", "..")))
	if _, err := os.Stat(daemon.path(daemonStateFile)); err == nil && filepath.Base(filepath.Dir(filepath.Clean(string(d)))) == projectsDir {
		return daemon.path(robotsFile)
	}
	return d.path(robotsFile)
}

// openBoltStore returns an interface that is nil where the store is.
func openBoltStore(file string, opts bolt.Options) (storeInspectorImporter, error) {
	s, err := bolt.Open(file, opts)
	if err != nil {
		return nil, fmt.Errorf("cannot open the state of the crawl: %w", err)
	}
	return s, nil
}

// frontierHasFailed reports whether the frontier has failed for good; it must then be opened
// again before the crawl continues.
func (s crawlStores) frontierHasFailed() bool {
	f, ok := s.frontier.(storage.FailureNotifier)
	if !ok {
		return false
	}
	select {
	case <-f.FailureChannel():
		return true
	default:
		return false
	}
}

// Close makes all of the crawl durable. The frontier's last changes wait for what was
// learnt of robots.txt files, so these are closed last: see openBoltFrontier.
func (s crawlStores) Close() error { return errors.Join(s.frontier.Close(), s.robots.Close()) }

// closeProjectStores closes what is a project's alone, in a daemon: what is known of robots.txt
// files is all projects', unless it is in Redis.
func (s crawlStores) closeProjectStores() error {
	if s.isRemote {
		return s.Close()
	}
	return s.frontier.Close()
}

// A storeInspectorImporter is one that can be asked what it holds, and take over what another does.
type storeInspectorImporter interface {
	storage.Store
	storage.Inspector
	storage.Importer
}
