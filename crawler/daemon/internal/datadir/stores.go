package datadir

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
	"github.com/decorum-crawler/decorum/storage/redis"
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
	return OpenBoltFile(file, opts)
}

// robotsStorePath is the file that keeps what is known of robots.txt files: the crawl's own,
// or, in the directory of a daemon's project, that of all its projects.
func (d StateDir) robotsStorePath() string {
	if daemon, isProject := d.DaemonDir(); isProject {
		return daemon.Path(RobotsFile)
	}
	return d.Path(RobotsFile)
}

// OpenBoltFile returns an interface that is nil where the store is.
func OpenBoltFile(file string, opts bolt.Options) (StoreInspectorImporter, error) {
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

// ImportNoteKey is the crawl's note that its state was imported. It is of this state
// alone, and in no export.
const ImportNoteKey = "import"

// An ImportMarker says what was imported, and whether it is all there.
type ImportMarker struct {
	ExportHeaderSHA256 string `json:"export"` // SHA-256 of the first line, which has the time
	Complete           bool   `json:"whole"`
}

// ReadImportMarker returns the mark of a state; false if it was not imported.
func ReadImportMarker(ctx context.Context, frontier StoreInspectorImporter) (m ImportMarker, imported bool, err error) {
	text, err := frontier.ReadNote(ctx, decorum.Origin{}, ImportNoteKey)
	if err != nil || text == nil {
		return m, false, err
	}
	return m, true, json.Unmarshal(text, &m)
}

func (m ImportMarker) SaveToFrontier(ctx context.Context, frontier StoreInspectorImporter) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return errors.Join(frontier.SetNote(ctx, decorum.Origin{}, ImportNoteKey, text), frontier.Flush(ctx))
}

// RequireCompleteImport returns an error if only a part of the state was imported: who crawls
// with it would visit pages again that are still to come as seen.
func RequireCompleteImport(frontier StoreInspectorImporter) error {
	ctx, cancel := context.WithTimeout(context.Background(), RedisOpenTimeout)
	defer cancel()
	m, imported, err := ReadImportMarker(ctx, frontier)
	if err == nil && imported && !m.Complete {
		err = usage.Errorf("only a part of this crawl was imported: repeat decorum frontier import with the whole export")
	}
	return err
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

// RedisOptions returns the options for the project's Redis. It opens files by open.
func RedisOptions(r *project.RedisSettings, open inputfile.OpenFunc) (opts redis.Options, err error) {
	opts = redis.Options{Addresses: r.Addresses, Username: r.Username, Partitions: r.Partitions, Durability: redis.Durability(r.Durability)}
	if r.PasswordFile != "" {
		text, err := inputfile.ReadSmall(open, r.PasswordFile)
		if err != nil {
			return opts, usage.Errorf("store.redis.password_file: %w", err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		opts.Password = strings.TrimSuffix(first, "\r")
	}
	if r.TLS {
		opts.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if r.CAFile != "" {
		text, err := inputfile.ReadSmall(open, r.CAFile)
		if err != nil {
			return opts, usage.Errorf("store.redis.ca_file: %w", err)
		}
		opts.TLS.RootCAs = x509.NewCertPool()
		if !opts.TLS.RootCAs.AppendCertsFromPEM(text) {
			return opts, usage.Errorf("store.redis.ca_file: %s holds no certificate", r.CAFile)
		}
	}
	return opts, nil
}

// RedisOpenTimeout is how long it may take to find the servers of a store.
const RedisOpenTimeout = 30 * time.Second

// OpenRedisStores opens the stores of a crawl whose state is in Redis, as files would be
// opened, and notes in its directory that it is.
func OpenRedisStores(p project.Project, open inputfile.OpenFunc, boltOpts bolt.Options) (s CrawlStores, err error) {
	dir := StateDir(p.Store.Path)
	if _, err := os.Stat(dir.Path(StoreFile)); err == nil {
		return s, usage.Errorf("the state of this crawl is in %s, and store.redis names another place: leave that out, or name another directory with --data",
			dir.Path(StoreFile))
	}
	opts, err := RedisOptions(&p.Store.Redis, open)
	if err != nil {
		return s, err
	}
	if boltOpts.ListOutputFiles != nil {
		l := durableLengthRecorder{path: dir.Path(outputLengthsFile), listOutputFiles: boltOpts.ListOutputFiles}
		beforeWrite := boltOpts.BeforeWrite
		boltOpts.BeforeWrite = func() error {
			if err := beforeWrite(); err != nil {
				return err
			}
			return l.saveIfDue()
		}
	}
	opts.PostInterruptionDelay, opts.BeforeAck, opts.OnDamaged = boltOpts.PostInterruptionDelay, boltOpts.BeforeWrite, boltOpts.OnDamaged
	prefix := p.Store.Redis.Prefix + ":" + p.Name
	s.IsRemote = true
	if s.Robots, err = openRedisStore(opts, prefix+":robots"); err != nil {
		return CrawlStores{}, err
	}
	opts.OnStallChange = boltOpts.OnStallChange // of the frontier's alone: it is asked as a whole, and often
	if s.Frontier, err = openRedisStore(opts, prefix+":frontier"); err == nil {
		if err = WriteFileAtomic(dir.Path(redisFile), []byte(prefix+"\n")); err == nil {
			return s, nil
		}
		err = errors.Join(err, s.Frontier.Close())
	}
	return CrawlStores{}, errors.Join(err, s.Robots.Close())
}

// openRedisStore returns an interface that is nil where the store is.
func openRedisStore(opts redis.Options, prefix string) (StoreInspectorImporter, error) {
	ctx, cancel := context.WithTimeout(context.Background(), RedisOpenTimeout)
	defer cancel()
	opts.Prefix = prefix
	s, err := redis.Open(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("cannot open the state of the crawl: %w", err)
	}
	return s, nil
}
