package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// Stores keep the state of a crawl. What is known of robots.txt files has one of
// its own, which crawls of one process share.
type stores struct {
	frontier, robots store
	remote           bool // in Redis: others work on them too, and they may be out of reach
}

// openStores opens the state of the crawl, which must be whole.
func openStores(p Project, opts bolt.Options) (stores, error) {
	s, err := openAnyStores(p, opts)
	if err != nil {
		return stores{}, err
	}
	if err := mustBeWhole(s.frontier); err != nil {
		return stores{}, errors.Join(err, s.Close())
	}
	return s, nil
}

// openAnyStores opens the files of the crawl's directory, or what it has in Redis.
func openAnyStores(p Project, opts bolt.Options) (s stores, err error) {
	if p.Store.Redis.isUsed() {
		return openRedis(p, nil, opts)
	}
	dir := stateDir(p.Store.Path)
	if err := dir.notInRedis(); err != nil {
		return stores{}, err
	}
	beside := opts
	beside.OutputFiles = nil // the frontier keeps the files
	if s.robots, err = openStore(dir.robots(), beside); err != nil {
		return stores{}, err
	}
	if s.frontier, err = openFrontier(dir.path(storeFile), opts, s.robots); err != nil {
		return stores{}, errors.Join(err, s.robots.Close())
	}
	return s, nil
}

// openFrontier opens the file of a frontier. What was learnt of robots.txt files is on
// the disk before the frontier says that they have been asked for: else a crash between
// the two would have a crawl wait for a redirect of a robots.txt that was followed.
func openFrontier(file string, opts bolt.Options, robots store) (store, error) {
	recorded := opts.BeforeWrite
	opts.BeforeWrite = func() error {
		err := robots.Flush(context.Background())
		if err == nil && recorded != nil {
			err = recorded()
		}
		return err
	}
	return openStore(file, opts)
}

// robots is the file that keeps what is known of robots.txt files: the crawl's own,
// or, in the directory of a daemon's project, that of all its projects.
func (d stateDir) robots() string {
	daemon := stateDir(d.path(filepath.Join("..", "..")))
	if _, err := os.Stat(daemon.path(wishesFile)); err == nil && filepath.Base(filepath.Dir(filepath.Clean(string(d)))) == projectsDir {
		return daemon.path(robotsFile)
	}
	return d.path(robotsFile)
}

// openStore returns an interface that is nil where the store is.
func openStore(file string, opts bolt.Options) (store, error) {
	s, err := bolt.Open(file, opts)
	if err != nil {
		return nil, fmt.Errorf("cannot open the state of the crawl: %w", err)
	}
	return s, nil
}

// hasFailed reports whether the frontier has failed for good; it must then be opened
// again before the crawl continues.
func (s stores) hasFailed() bool {
	f, ok := s.frontier.(storage.Failer)
	if !ok {
		return false
	}
	select {
	case <-f.Failed():
		return true
	default:
		return false
	}
}

// Close makes all of the crawl durable. The frontier's last changes wait for what was
// learnt of robots.txt files, so these are closed last: see openFrontier.
func (s stores) Close() error { return errors.Join(s.frontier.Close(), s.robots.Close()) }

// closeOwn closes what is a project's alone, in a daemon: what is known of robots.txt
// files is all projects', unless it is in Redis.
func (s stores) closeOwn() error {
	if s.remote {
		return s.Close()
	}
	return s.frontier.Close()
}
