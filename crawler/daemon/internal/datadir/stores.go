package datadir

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// Stores keep the state of a crawl. What is known of robots.txt files has one of
// its own, which crawls of one process share.
type CrawlStores struct {
	Frontier StoreInspectorImporter
	Robots   storage.NoteStore
	IsRemote bool // in Redis: others work on them too, and they may be out of reach
}

// OpenStores opens the state of the crawl, which must be whole.
func OpenStores(p project.Project, opts bolt.Options) (CrawlStores, error) {
	s, err := OpenStoresAllowingPartialImport(p, opts)
	if err != nil {
		return CrawlStores{}, err
	}
	if err := RequireCompleteImport(s.Frontier); err != nil {
		return CrawlStores{}, errors.Join(err, s.Close())
	}
	return s, nil
}

// OpenStoresAllowingPartialImport opens the files of the crawl's directory, or what it has in Redis.
func OpenStoresAllowingPartialImport(p project.Project, opts bolt.Options) (s CrawlStores, err error) {
	if p.Store.Redis.IsUsed() {
		return OpenRedisStores(p, os.Open, opts)
	}
	dir := StateDir(p.Store.Path)
	if err := dir.RequireLocalState(); err != nil {
		return CrawlStores{}, err
	}
	robotsOpts := opts
	robotsOpts.ListOutputFiles = nil // the frontier keeps the files
	if s.Robots, err = OpenBoltNotes(dir.robotsStorePath(), robotsOpts); err != nil {
		return CrawlStores{}, err
	}
	if s.Frontier, err = OpenBoltFrontier(dir.Path(StoreFile), opts, s.Robots); err != nil {
		return CrawlStores{}, errors.Join(err, s.Robots.Close())
	}
	return s, nil
}

// OpenBoltFrontier opens the file of a frontier. What was learnt of robots.txt files is on
// the disk before the frontier says that they have been asked for: else a crash between
// the two would have a crawl wait for a redirect of a robots.txt that was followed.
func OpenBoltFrontier(file string, opts bolt.Options, robots storage.NoteStore) (StoreInspectorImporter, error) {
	beforeWrite := opts.BeforeWrite
	opts.BeforeWrite = func() error {
		err := robots.Flush(context.Background())
		if err == nil && beforeWrite != nil {
			err = beforeWrite()
		}
		return err
	}
	return OpenBoltStore(file, opts)
}

// robotsStorePath is the file that keeps what is known of robots.txt files: the crawl's own,
// or, in the directory of a daemon's project, that of all its projects.
func (d StateDir) robotsStorePath() string {
	if daemon, isProject := d.DaemonDir(); isProject {
		return daemon.Path(RobotsFile)
	}
	return d.Path(RobotsFile)
}

// OpenBoltStore returns an interface that is nil where the store is.
func OpenBoltStore(file string, opts bolt.Options) (StoreInspectorImporter, error) {
	s, err := bolt.Open(file, opts)
	if err != nil {
		return nil, fmt.Errorf("cannot open the state of the crawl: %w", err)
	}
	return s, nil
}

// OpenBoltNotes returns an interface that is nil where the notes are.
func OpenBoltNotes(file string, opts bolt.Options) (storage.NoteStore, error) {
	n, err := bolt.OpenNotes(file, opts)
	if err != nil {
		return nil, fmt.Errorf("cannot open the state of the crawl: %w", err)
	}
	return n, nil
}

// FrontierHasFailed reports whether the frontier has failed for good; it must then be opened
// again before the crawl continues.
func (s CrawlStores) FrontierHasFailed() bool {
	f, ok := s.Frontier.(storage.FailureNotifier)
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
// learnt of robots.txt files, so these are closed last: see OpenBoltFrontier.
func (s CrawlStores) Close() error { return errors.Join(s.Frontier.Close(), s.Robots.Close()) }

// CloseProjectStores closes what is a project's alone, in a daemon: what is known of robots.txt
// files is all projects', unless it is in Redis.
func (s CrawlStores) CloseProjectStores() error {
	if s.IsRemote {
		return s.Close()
	}
	return s.Frontier.Close()
}

// A StoreInspectorImporter is one that can be asked what it holds, and take over what another does.
type StoreInspectorImporter interface {
	storage.Store
	storage.Inspector
	storage.OriginLister
	storage.Importer
}

// IsEmptyStore reports whether a store was never used.
func IsEmptyStore(ctx context.Context, s storage.NoteStore) (bool, error) {
	empty := true
	stop := func() bool { empty = false; return false }
	err := s.OriginNames(ctx, func(decorum.Origin) bool { return stop() })
	if err == nil && empty {
		err = s.OriginNotes(ctx, decorum.Origin{}, func(string, []byte) bool { return stop() })
	}
	return empty, err
}
