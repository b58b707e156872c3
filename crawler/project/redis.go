package project

import (
	"fmt"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

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

// LeaseTTL returns how long a URL stays in hand; 0 means the frontier's default.
func (s *StoreSettings) LeaseTTL() time.Duration {
	if !s.Redis.IsUsed() {
		return 0 // there is no other process
	}
	return time.Duration(s.Redis.LeaseDuration)
}

// IsUsed reports whether the state is in Redis.
func (r *RedisSettings) IsUsed() bool { return len(r.Addresses) > 0 }

// StoreIdentity says where a state is: in files if it is nowhere else.
func (r *RedisSettings) StoreIdentity() string {
	if !r.IsUsed() {
		return ""
	}
	return fmt.Sprintf("%+v", *r)
}

// checkRedisSettings checks where the state is kept, if that is Redis.
func checkRedisSettings(p *Project) *FieldProblem {
	r := &p.Store.Redis
	for i, address := range r.Addresses {
		_, port, err := net.SplitHostPort(address)
		if n, e := strconv.Atoi(port); err != nil || e != nil || n < 1 || n > 65535 {
			return NewFieldProblem(indexedFieldName("store.redis.addresses", i), "%q is not the address of a server: expected HOST:PORT, as in 127.0.0.1:7000", address)
		}
	}
	switch {
	case !r.IsUsed() && !equalFieldValues(reflect.ValueOf(*r), reflect.ValueOf(defaultRedisConfig())):
		return NewFieldProblem("store.redis.addresses", "no server is named: expected HOST:PORT of at least one")
	case r.Prefix == "" || strings.ContainsAny(r.Prefix, "{}"):
		return NewFieldProblem("store.redis.prefix", "%q is no prefix: expected text without braces", r.Prefix)
	case r.Partitions < 1 || r.Partitions > redis.MaxPartitions:
		return NewFieldProblem("store.redis.partitions", "%d: expected 1 to %d", r.Partitions, redis.MaxPartitions)
	case !slices.Contains([]string{"replica", "disk", "none"}, r.Durability):
		return NewFieldProblem("store.redis.durability", "%q is not one of replica, disk, none", r.Durability)
	case r.LeaseDuration < Duration(minLease) || r.LeaseDuration > Duration(day):
		return NewFieldProblem("store.redis.lease", "%v: expected at least %v and at most a day", time.Duration(r.LeaseDuration), minLease)
	case r.CAFile != "" && !r.TLS:
		return NewFieldProblem("store.redis.ca_file", "connections are not encrypted: set store.redis.tls")
	case r.IsUsed() && p.Name == "":
		return NewFieldProblem("project", "a name is needed where crawls share servers (store.redis)")
	}
	return nil
}
