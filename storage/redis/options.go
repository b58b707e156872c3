package redis

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Durability says what a call that adds something must have seen before it
// returns: what a crawl must not lose.
type Durability string

// Durabilities.
const (
	// DurabilityReplica: a replica has it. Nothing is lost when one server dies at a time.
	DurabilityReplica Durability = "replica"
	// DurabilityDisk: a replica has it, and it is on the disk of the server
	// (appendfsync always): nothing is lost when all lose power.
	DurabilityDisk Durability = "disk"
	// DurabilityNone: the server has it. A server that dies may take the last moment with it.
	DurabilityNone Durability = "none"
)

// Options are the settings of a Store. Addresses and Prefix must be set; zero
// values of the others mean the defaults.
type Options struct {
	// Addresses are servers of the cluster, host:port. One that answers is
	// enough: it tells of the others.
	Addresses []string
	// Username and Password are those of an ACL user; without a name, of the
	// default user.
	Username, Password string
	// TLS is how connections are encrypted; nil: they are not.
	TLS *tls.Config
	// Prefix begins all keys of the store: crawls that share servers have
	// different ones. It must not be empty, nor hold braces.
	Prefix string
	// Partitions is in how many shares the hosts are cut; fixed when the store is
	// made. 0 means 64, at most 1,024. There must be more than servers.
	Partitions int
	// Durability is what Add and SetNote wait for, and what must be kept for politeness'
	// sake. Empty means DurabilityReplica.
	Durability Durability
	// PostInterruptionDelay is how long a host rests at least whose visit was cut short:
	// by Close, or because a server was lost. 0 means 1 s.
	PostInterruptionDelay time.Duration
	// PartitionRefreshInterval is how old may be what is known of the partitions to which others
	// may have added. Who finds that another process was faster leaves the hosts of
	// that partition to it for up to twice as long. 0 means 500 ms.
	PartitionRefreshInterval time.Duration
	// NoteCacheBytes is how many bytes of notes are kept in memory, of each server.
	// 0 means 16 MiB.
	NoteCacheBytes int
	// Timeout is how long a server may take to answer, before the call is made
	// again. 0 means 5 s.
	Timeout time.Duration
	// BeforeAck is called before acks are sent, and must put on the disk all that
	// has to be there when they are. If it fails, so does the Ack. It is called
	// once for all that wait for it. nil: there is nothing.
	BeforeAck func() error
	// OnStallChange is told when a server does not answer, why, and nil when all
	// answer again. It must not call the store. nil means nobody is told.
	OnStallChange func(error)
	// OnDamaged is told of records that make no sense, which are passed by. It must
	// not call the store. nil means nobody is told.
	OnDamaged func(error)

	usesCallerTime bool // for tests: the time is what calls are told
}

func (o Options) withDefaults() Options {
	o.Partitions = cmp.Or(o.Partitions, 64)
	o.Durability = cmp.Or(o.Durability, DurabilityReplica)
	o.PostInterruptionDelay = cmp.Or(max(o.PostInterruptionDelay, 0), time.Second)
	o.PartitionRefreshInterval = cmp.Or(max(o.PartitionRefreshInterval, 0), 500*time.Millisecond)
	o.NoteCacheBytes = cmp.Or(max(o.NoteCacheBytes, 0), 16<<20)
	o.Timeout = cmp.Or(max(o.Timeout, 0), 5*time.Second)
	if o.BeforeAck == nil {
		o.BeforeAck = func() error { return nil }
	}
	if o.OnStallChange == nil {
		o.OnStallChange = func(error) {}
	}
	if o.OnDamaged == nil {
		o.OnDamaged = func(error) {}
	}
	return o
}

// MaxPartitions bounds what a process asks for when it looks at all.
const MaxPartitions = 1024

// validate returns an error if the options make no sense.
func (o *Options) validate() error {
	switch {
	case len(o.Addresses) == 0:
		return errors.New("no address of a server is given")
	case o.Prefix == "" || strings.ContainsAny(o.Prefix, "{}"):
		return fmt.Errorf("prefix %q: it must not be empty, nor hold braces", o.Prefix)
	case o.Partitions < 1 || o.Partitions > MaxPartitions:
		return fmt.Errorf("%d partitions: there may be 1 to %d", o.Partitions, MaxPartitions)
	case o.Durability != DurabilityReplica && o.Durability != DurabilityDisk && o.Durability != DurabilityNone:
		return fmt.Errorf("durability %q: it is one of %s, %s, %s", o.Durability, DurabilityReplica, DurabilityDisk, DurabilityNone)
	}
	return nil
}

// interruptedDelay is PostInterruptionDelay; a test that tells the time says all rests itself.
func (o *Options) interruptedDelay() time.Duration {
	if o.usesCallerTime {
		return 0
	}
	return o.PostInterruptionDelay
}
