package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/storage/bolt"
	"github.com/decorum-crawler/decorum/storage/redis"
)

// RedisSettings is a store that many processes share; without addresses the state is in
// the directory of the crawl.
type RedisSettings struct {
	Addresses     []string `yaml:"addresses"`     // servers, host:port; the others are found by them
	Username      string   `yaml:"username"`      // of the ACL; empty: the default user
	PasswordFile  string   `yaml:"password_file"` // its first line is the password
	TLS           bool     `yaml:"tls"`           // speak TLS to the servers
	CAFile        string   `yaml:"ca_file"`       // certificates (PEM) by which servers are known; empty: the system's
	Prefix        string   `yaml:"prefix"`        // begins all keys, before the project's name
	Partitions    int      `yaml:"partitions"`    // in which hosts are cut, fixed when the store is made
	Durability    string   `yaml:"durability"`    // what a link that was found must have reached: replica, disk or none
	LeaseDuration Duration `yaml:"lease"`         // how long a URL stays with a process that gives no sign of life
}

func defaultRedisConfig() RedisSettings {
	return RedisSettings{Prefix: "decorum", Partitions: 64, Durability: string(redis.DurabilityReplica), LeaseDuration: Duration(30 * time.Second)}
}

// minLease bounds how often leases are renewed, three times as often as they
// would run out.
const minLease = time.Second

// leaseTTL returns how long a URL stays in hand; 0 means the frontier's default.
func (s *StoreSettings) leaseTTL() time.Duration {
	if !s.Redis.isUsed() {
		return 0 // there is no other process
	}
	return time.Duration(s.Redis.LeaseDuration)
}

// isUsed reports whether the state is in Redis.
func (r *RedisSettings) isUsed() bool { return len(r.Addresses) > 0 }

// location says where a state is: in files if it is nowhere else.
func (r *RedisSettings) location() string {
	if !r.isUsed() {
		return ""
	}
	return fmt.Sprintf("%+v", *r)
}

// checkRedisSettings checks where the state is kept, if that is Redis.
func checkRedisSettings(p *Project) *fieldProblem {
	r := &p.Store.Redis
	for i, address := range r.Addresses {
		_, port, err := net.SplitHostPort(address)
		if n, e := strconv.Atoi(port); err != nil || e != nil || n < 1 || n > 65535 {
			return newProjectFieldProblem(indexedFieldName("store.redis.addresses", i), "%q is not the address of a server: expected HOST:PORT, as in 127.0.0.1:7000", address)
		}
	}
	switch {
	case !r.isUsed() && !equalFieldValues(reflect.ValueOf(*r), reflect.ValueOf(defaultRedisConfig())):
		return newProjectFieldProblem("store.redis.addresses", "no server is named: expected HOST:PORT of at least one")
	case r.Prefix == "" || strings.ContainsAny(r.Prefix, "{}"):
		return newProjectFieldProblem("store.redis.prefix", "%q is no prefix: expected text without braces", r.Prefix)
	case r.Partitions < 1 || r.Partitions > redis.MaxPartitions:
		return newProjectFieldProblem("store.redis.partitions", "%d: expected 1 to %d", r.Partitions, redis.MaxPartitions)
	case !slices.Contains([]string{"replica", "disk", "none"}, r.Durability):
		return newProjectFieldProblem("store.redis.durability", "%q is not one of replica, disk, none", r.Durability)
	case r.LeaseDuration < Duration(minLease) || r.LeaseDuration > Duration(day):
		return newProjectFieldProblem("store.redis.lease", "%v: expected at least %v and at most a day", time.Duration(r.LeaseDuration), minLease)
	case r.CAFile != "" && !r.TLS:
		return newProjectFieldProblem("store.redis.ca_file", "connections are not encrypted: set store.redis.tls")
	case r.isUsed() && p.Name == "":
		return newProjectFieldProblem("project", "a name is needed where crawls share servers (store.redis)")
	}
	return nil
}

// options returns the options for the project's Redis. It opens files within c.
func (r *RedisSettings) options(c *pathConfinement) (opts redis.Options, err error) {
	opts = redis.Options{Addresses: r.Addresses, Username: r.Username, Partitions: r.Partitions, Durability: redis.Durability(r.Durability)}
	if r.PasswordFile != "" {
		text, err := readSmallFile(c.openInput, r.PasswordFile)
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
		text, err := readSmallFile(c.openInput, r.CAFile)
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

// redisOpenTimeout is how long it may take to find the servers of a store.
const redisOpenTimeout = 30 * time.Second

// openRedisStores opens the stores of a crawl whose state is in Redis, as files would be
// opened, and notes in its directory that it is.
func openRedisStores(p Project, c *pathConfinement, boltOpts bolt.Options) (s crawlStores, err error) {
	dir := stateDir(p.Store.Path)
	if _, err := os.Stat(dir.path(storeFile)); err == nil {
		return s, usage.Errorf("the state of this crawl is in %s, and store.redis names another place: leave that out, or name another directory with --data",
			dir.path(storeFile))
	}
	opts, err := p.Store.Redis.options(c)
	if err != nil {
		return s, err
	}
	if boltOpts.ListOutputFiles != nil {
		l := durableLengthRecorder{path: dir.path(outputLengthsFile), currentOutputFiles: boltOpts.ListOutputFiles}
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
	s.isRemote = true
	if s.robots, err = openRedisStore(opts, prefix+":robots"); err != nil {
		return crawlStores{}, err
	}
	opts.OnStallChange = boltOpts.OnStallChange // of the frontier's alone: it is asked as a whole, and often
	if s.frontier, err = openRedisStore(opts, prefix+":frontier"); err == nil {
		if err = writeFileAtomic(dir.path(redisFile), []byte(prefix+"\n")); err == nil {
			return s, nil
		}
		err = errors.Join(err, s.frontier.Close())
	}
	return crawlStores{}, errors.Join(err, s.robots.Close())
}

// openRedisStore returns an interface that is nil where the store is.
func openRedisStore(opts redis.Options, prefix string) (inspectableStore, error) {
	ctx, cancel := context.WithTimeout(context.Background(), redisOpenTimeout)
	defer cancel()
	opts.Prefix = prefix
	s, err := redis.Open(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("cannot open the state of the crawl: %w", err)
	}
	return s, nil
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
