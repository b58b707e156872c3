package datadir

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/storage/bolt"
	"github.com/decorum-crawler/decorum/storage/redis"
)

// RedisOptions returns the options for the Redis servers of a project. It reads the files that r names with
// open.
func RedisOptions(r *project.RedisSettings, open inputfile.OpenFunc) (opts redis.Options, err error) {
	opts = redis.Options{Addresses: r.Addresses, Username: r.Username, Partitions: r.Partitions,
		Durability: redis.Durability(r.Durability)}
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
		opts.TLS.RootCAs = x509.NewCertPool()
		if err := inputfile.AddCertificates(open, r.CAFile, opts.TLS.RootCAs); err != nil {
			return opts, usage.Errorf("store.redis.ca_file: %w", err)
		}
	}
	return opts, nil
}

// RedisOpenTimeout limits the time for opening a store in Redis.
const RedisOpenTimeout = 30 * time.Second

// OpenRedisStores opens the stores of a crawl whose state is in Redis, with those of boltOpts that apply,
// and records in the crawl's directory that the state is in Redis. It fails if the directory holds a state
// in files.
func OpenRedisStores(p project.Project, open inputfile.OpenFunc, boltOpts bolt.Options) (s CrawlStores, err error) {
	dir := StateDir(p.Store.Path)
	if _, err := os.Stat(dir.Path(StoreFile)); err == nil {
		return s, usage.Errorf("the state of this crawl is in %s, and store.redis names another place: "+
			"leave that out, or name another directory with --data", dir.Path(StoreFile))
	}
	opts, err := RedisOptions(&p.Store.Redis, open)
	if err != nil {
		return s, err
	}
	// Record the lengths of the output files in a local file, each time after they were synced.
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
	opts.PostInterruptionDelay, opts.BeforeAck, opts.OnDamaged = boltOpts.PostInterruptionDelay,
		boltOpts.BeforeWrite, boltOpts.OnDamaged
	// Open the two stores, and mark the directory last.
	prefix := p.Store.Redis.Prefix + ":" + p.Name
	s.IsRemote = true
	if s.Robots, err = openRedisStore(opts, prefix+":robots"); err != nil {
		return CrawlStores{}, err
	}
	opts.OnStallChange = boltOpts.OnStallChange // only of the frontier, which is queried often and in all partitions
	if s.Frontier, err = openRedisStore(opts, prefix+":frontier"); err == nil {
		if err = WriteFileAtomic(dir.Path(redisFile), []byte(prefix+"\n")); err == nil {
			return s, nil
		}
		err = errors.Join(err, s.Frontier.Close())
	}
	return CrawlStores{}, errors.Join(err, s.Robots.Close())
}

// openRedisStore opens a store in Redis. It returns a nil interface with an error.
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
