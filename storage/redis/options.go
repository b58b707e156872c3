package redis

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Durability says what must have happened to a change that the crawl must not lose before the
// call that makes it returns.
type Durability string

// Values of Options.Durability.
const (
	// DurabilityReplica: a replica has the change. Nothing is lost when one server dies at a
	// time. Each master needs a replica.
	DurabilityReplica Durability = "replica"
	// DurabilityDisk: a replica has the change, and the master has it on disk. Nothing is lost
	// when all servers lose power. Open requires appendonly yes and appendfsync always.
	DurabilityDisk Durability = "disk"
	// DurabilityNone: the master has the change. A master that dies may lose the changes of its
	// last moments.
	DurabilityNone Durability = "none"
)

// Options are the settings of a Store. Addresses and Prefix must be set. The zero value of any
// other field means its default.
type Options struct {
	// Addresses are servers of the cluster, as host:port. One that answers is enough: it names
	// the others.
	Addresses []string
	// Username and Password are those of an ACL user. An empty Username means the default user.
	Username, Password string
	// TLS is the configuration of encrypted connections. nil means that connections are not
	// encrypted.
	TLS *tls.Config
	// Prefix begins all keys of the store. Crawls that share servers must have different ones.
	// It must not be empty, nor contain braces.
	Prefix string
	// Partitions is the number of partitions into which hosts are divided, from 1 to
	// MaxPartitions. 0 means 64. It is fixed when the store is created. It should exceed the
	// number of masters: a master without a partition has nothing to do.
	Partitions int
	// Durability is what Add, SetNote and other calls that must not be lost wait for, and
	// Ack, if its host rests for longer than the pause after a failover. Empty means
	// DurabilityReplica.
	Durability Durability
	// PostInterruptionDelay is how long a host rests at least after a visit that Close or the
	// loss of a server cut short. 0 means 1 s.
	PostInterruptionDelay time.Duration
	// PartitionRefreshInterval is how old the summaries of partitions may become before Lease
	// asks whether other processes have changed them. A process that finds another one to be
	// faster leaves the hosts of that partition that come due to it, for one to two intervals.
	// 0 means 500 ms.
	PartitionRefreshInterval time.Duration
	// NoteCacheBytes is how many bytes of notes are kept in memory for each server. 0 means
	// 16 MiB.
	NoteCacheBytes int
	// Timeout is how long a server may take to answer before the call is repeated. 0 means 5 s.
	Timeout time.Duration
	// BeforeAck is called before acks are sent. It must put on the disk whatever the acks rely
	// on, such as the output of their pages. If it fails, Ack returns its error and sends
	// nothing. Calls do not overlap: one call serves all Acks that were waiting when it began.
	// It must not call the store. nil means that nothing needs to be done.
	BeforeAck func() error
	// OnStallChange is called with the reason when a server does not answer, and with nil when
	// all servers answer again. Calls may overlap. It must not call the store. nil means that
	// nothing is called.
	OnStallChange func(error)
	// OnDamaged is called with an error for each record that cannot be decoded. The URL of such
	// a record is dropped when it is leased, and stays where it is when it is parked or awaits its
	// revisit. OnDamaged must not call the store. nil means that nothing is called.
	OnDamaged func(error)

	usesCallerTime bool // for tests: the time is the latest that a call was given
}

// withDefaults returns the options with defaults in place of zero values.
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

// MaxPartitions is the highest Options.Partitions. It bounds what a process reads when it
// refreshes the summaries of all partitions.
const MaxPartitions = 1024

// validate returns an error that names the first invalid option. The defaults must be in place.
func (o *Options) validate() error {
	switch {
	case len(o.Addresses) == 0:
		return errors.New("no address of a server is given")
	case o.Prefix == "" || strings.ContainsAny(o.Prefix, "{}"):
		return fmt.Errorf("prefix %q: it must not be empty, nor contain braces", o.Prefix)
	case o.Partitions < 1 || o.Partitions > MaxPartitions:
		return fmt.Errorf("%d partitions: there may be 1 to %d", o.Partitions, MaxPartitions)
	case o.Durability != DurabilityReplica && o.Durability != DurabilityDisk && o.Durability != DurabilityNone:
		return fmt.Errorf("durability %q: want %s, %s or %s",
			o.Durability, DurabilityReplica, DurabilityDisk, DurabilityNone)
	}
	return nil
}

// interruptedDelay returns PostInterruptionDelay. With the caller's time it returns 0, because
// such a test sets all delays itself.
func (o *Options) interruptedDelay() time.Duration {
	if o.usesCallerTime {
		return 0
	}
	return o.PostInterruptionDelay
}
