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

// CrawlStores hold the state of a crawl. The robots.txt files have a store of their own, which the crawls
// of one daemon share unless the state is in Redis.
type CrawlStores struct {
	Frontier StoreInspectorImporter
	Robots   storage.NoteStore
	IsRemote bool // in Redis: other processes use the stores, too, and they may be unavailable
}

// OpenStores opens the stores of a crawl. It fails if an import into them was not completed. The caller
// must call Close.
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

// OpenStoresAllowingPartialImport opens the stores of a crawl: the files in its directory, or those in
// Redis.
func OpenStoresAllowingPartialImport(p project.Project, opts bolt.Options) (s CrawlStores, err error) {
	if p.Store.Redis.IsUsed() {
		return OpenRedisStores(p, os.Open, opts)
	}
	dir := StateDir(p.Store.Path)
	if err := dir.RequireLocalState(); err != nil {
		return CrawlStores{}, err
	}
	robotsOpts := opts
	robotsOpts.ListOutputFiles = nil // the frontier records the output files
	if s.Robots, err = OpenBoltNotes(dir.robotsStorePath(), robotsOpts); err != nil {
		return CrawlStores{}, err
	}
	if s.Frontier, err = OpenBoltFrontier(dir.Path(StoreFile), opts, s.Robots); err != nil {
		return CrawlStores{}, errors.Join(err, s.Robots.Close())
	}
	return s, nil
}

// OpenBoltFrontier opens the file of a frontier. The frontier flushes robots before each of its writes, so
// that a robots.txt file is on the disk before the ack of its visit. Otherwise, after a crash between the
// two, the frontier could wait for a robots.txt redirect that the gate has already processed.
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

// robotsStorePath returns the path of the store of robots.txt files: that of the crawl or, for the
// directory of a daemon's project, that of all projects.
func (d StateDir) robotsStorePath() string {
	if daemon, project := d.DaemonProject(); project != "" {
		return daemon.Path(RobotsFile)
	}
	return d.Path(RobotsFile)
}

// OpenBoltStore opens a frontier in a file. It returns a nil interface with an error.
func OpenBoltStore(file string, opts bolt.Options) (StoreInspectorImporter, error) {
	s, err := bolt.Open(file, opts)
	if err != nil {
		return nil, fmt.Errorf("cannot open the state of the crawl: %w", err)
	}
	return s, nil
}

// OpenBoltNotes opens a store of notes in a file. It returns a nil interface with an error.
func OpenBoltNotes(file string, opts bolt.Options) (storage.NoteStore, error) {
	n, err := bolt.OpenNotes(file, opts)
	if err != nil {
		return nil, fmt.Errorf("cannot open the state of the crawl: %w", err)
	}
	return n, nil
}

// FrontierHasFailed reports whether the frontier has failed for good. It must then be opened again before
// the crawl continues.
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

// Close writes all changes to the disk and closes the stores. It closes Robots last, because the last
// write of the frontier flushes Robots: see OpenBoltFrontier.
func (s CrawlStores) Close() error { return errors.Join(s.Frontier.Close(), s.Robots.Close()) }

// CloseProjectStores closes the stores that a project of a daemon does not share: the frontier and, in
// Redis, the robots.txt files.
func (s CrawlStores) CloseProjectStores() error {
	if s.IsRemote {
		return s.Close()
	}
	return s.Frontier.Close()
}

// A StoreInspectorImporter is a Store that can also be inspected, and import the content of another store.
type StoreInspectorImporter interface {
	storage.Store
	storage.Inspector
	storage.OriginLister
	storage.Importer
}

// IsEmptyStore reports whether a store holds no origin and no note of the whole crawl.
func IsEmptyStore(ctx context.Context, s storage.NoteStore) (bool, error) {
	empty := true
	stop := func() bool { empty = false; return false }
	err := s.OriginNames(ctx, func(decorum.Origin) bool { return stop() })
	if err == nil && empty {
		err = s.OriginNotes(ctx, decorum.Origin{}, func(string, []byte) bool { return stop() })
	}
	return empty, err
}
