package project

import (
	"fmt"
	"net"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/storage/redis"
)

// RedisSettings says on which Redis servers many processes share the state of the crawl. Without
// addresses, the state is in the directory of the crawl.
type RedisSettings struct {
	Addresses    []string `yaml:"addresses"`     // servers, host:port; these lead to the others of the cluster
	Username     string   `yaml:"username"`      // ACL user; empty: the default user
	PasswordFile string   `yaml:"password_file"` // its first line is the password
	TLS          bool     `yaml:"tls"`           // connect to the servers with TLS
	CAFile       string   `yaml:"ca_file"`       // certificates (PEM) that verify servers; empty: the system's
	Prefix       string   `yaml:"prefix"`        // begins all keys, before the project's name
	Partitions   int      `yaml:"partitions"`    // number of groups of hosts; fixed when the store is created
	// what must have stored a new URL before the crawl relies on it: replica, disk or none
	Durability string `yaml:"durability"`
	// how long a URL stays leased to a process that has stopped responding
	LeaseDuration Duration `yaml:"lease"`
}

// defaultRedisConfig returns the settings of a project file without store.redis.
func defaultRedisConfig() RedisSettings {
	return RedisSettings{Prefix: "decorum", Partitions: 64, Durability: string(redis.DurabilityReplica),
		LeaseDuration: Duration(30 * time.Second)}
}

// minLease is the shortest lease. It limits how often a process renews its leases, which it does
// three times per lease.
const minLease = time.Second

// LeaseTTL returns how long a lease lasts without renewal; 0 means the frontier's default.
func (s *StoreSettings) LeaseTTL() time.Duration {
	if !s.Redis.IsUsed() {
		return 0 // no other process shares the state
	}
	return time.Duration(s.Redis.LeaseDuration)
}

// IsUsed reports whether the state is in Redis.
func (r *RedisSettings) IsUsed() bool { return len(r.Addresses) > 0 }

// StoreIdentity returns a text that differs between two Redis stores, or "" for a store in files. A
// daemon compares it to see whether a new version of a project file moves the state.
func (r *RedisSettings) StoreIdentity() string {
	if !r.IsUsed() {
		return ""
	}
	return fmt.Sprintf("%+v", *r)
}

// checkRedisSettings checks store.redis. Settings without addresses are an error, because they would
// have no effect.
func checkRedisSettings(p *Project, found *problemCollector) {
	r := &p.Store.Redis
	for i, address := range r.Addresses {
		_, port, err := net.SplitHostPort(address)
		if n, e := strconv.Atoi(port); err != nil || e != nil || n < 1 || n > 65535 {
			found.add(indexedFieldName("store.redis.addresses", i),
				"%q is not the address of a server: expected HOST:PORT, as in 127.0.0.1:7000", address)
		}
	}
	if !r.IsUsed() && !equalFieldValues(reflect.ValueOf(*r), reflect.ValueOf(defaultRedisConfig())) {
		found.add("store.redis.addresses", "no server: expected HOST:PORT of at least one")
	}
	if r.Prefix == "" || strings.ContainsAny(r.Prefix, "{}") {
		found.add("store.redis.prefix", "%q is not a prefix of keys: expected text without braces", r.Prefix)
	}
	if r.Partitions < 1 || r.Partitions > redis.MaxPartitions {
		found.add("store.redis.partitions", "%d: expected 1 to %d", r.Partitions, redis.MaxPartitions)
	}
	if r.LeaseDuration < Duration(minLease) || r.LeaseDuration > Duration(day) {
		found.add("store.redis.lease", "%v: expected at least %v and at most a day",
			time.Duration(r.LeaseDuration), minLease)
	}
	if r.CAFile != "" && !r.TLS {
		found.add("store.redis.ca_file", "connections are not encrypted: set store.redis.tls")
	}
	if r.IsUsed() && p.Name == "" {
		found.add("project",
			"a project in Redis (store.redis) needs a name, since other crawls may share the servers")
	}
}
