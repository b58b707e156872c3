package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// A Config says where the servers of a store are, and how they are called. All fields but Username,
// Password and TLS must be set.
type Config struct {
	Addresses          []string // servers of the cluster, host:port; one that answers is enough
	Username, Password string
	TLS                *tls.Config   // nil: connections are not encrypted
	Prefix             string        // begins the keys of all partitions
	Partitions         int           // number of partitions
	Durability         string        // one of the constants below
	CacheBytes         int           // bytes of hash fields that CachedHashField keeps for each server
	Timeout            time.Duration // how long a server may take to answer before a call is repeated
	OnStallChange      func(error)   // gets the reason when a server does not answer, nil when all do again
	UsesCallerTime     bool          // for tests: the time is the latest given to ScriptClock.AdvanceTo
}

// Values of Config.Durability, which package redis documents as redis.Durability.
const (
	DurabilityReplica = "replica"
	DurabilityDisk    = "disk"
	DurabilityNone    = "none"
)

// Open connects to a cluster. It returns an error if no server answers, or if a server does not meet
// the requirements of a store; the error wraps storage.ErrWriteStalled if a later attempt may
// succeed. The caller must call Close.
func Open(ctx context.Context, cfg Config) (*Client, error) {
	// PipelineMultiplex -1 means one connection to a server: see connect.
	conn, err := connect(ctx, rueidis.ClientOption{
		InitAddress: cfg.Addresses, Username: cfg.Username, Password: cfg.Password, TLSConfig: cfg.TLS,
		ClientName: "decorum", Dialer: net.Dialer{Timeout: cfg.Timeout}, ConnWriteTimeout: cfg.Timeout,
		PipelineMultiplex: -1, CacheSizeEachConn: cfg.CacheBytes,
	})
	if err != nil {
		return nil, AsTransient(fmt.Errorf("cannot reach Redis at %s: %w", strings.Join(cfg.Addresses, ", "), err))
	}
	if err := checkServers(ctx, conn.Nodes(), cfg.Durability); err != nil {
		conn.Close()
		return nil, err
	}
	partitions := makePartitions(cfg.Prefix, cfg.Partitions)
	transport := &scriptTransport{
		conn: conn, clock: &ScriptClock{usesCallerTime: cfg.UsesCallerTime}, timeout: cfg.Timeout,
		servers:        &partitionServers{conn: conn, partitions: partitions, timeout: cfg.Timeout},
		awaitsReplicas: cfg.Durability != DurabilityNone,
	}
	return &Client{
		callTracker: newCallTracker(), scriptTransport: transport, partitions: partitions,
		onStallChange: cfg.OnStallChange,
	}, nil
}

// connect returns a client that caches what it reads, where the servers can report changes (CLIENT
// TRACKING), and one without a cache where they cannot. The client has one connection to a server,
// besides those of commands that wait, so that a server reports changes in order with its replies.
func connect(ctx context.Context, option rueidis.ClientOption) (rueidis.Client, error) {
	d := contextBoundDialer{ctx: ctx}
	defer d.detachFromContext()
	option.DialCtxFn = d.dial
	client, err := rueidis.NewClient(option)
	if errors.Is(err, rueidis.ErrNoCache) {
		option.DisableCache = true
		client, err = rueidis.NewClient(option)
	}
	return client, err
}

// A contextBoundDialer dials for a rueidis.Client while that is made, because rueidis.NewClient takes
// no context. Until detachFromContext is called, the end of ctx closes the dialed connections.
type contextBoundDialer struct {
	mu          sync.Mutex      // guards ctx and detachFuncs
	ctx         context.Context // nil after detachFromContext
	detachFuncs []func() bool   // each keeps a connection open when ctx ends
}

// dial implements rueidis.ClientOption.DialCtxFn.
func (d *contextBoundDialer) dial(
	ctx context.Context, address string, plain *net.Dialer, secure *tls.Config,
) (conn net.Conn, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer d.abortOnContextDone(cancel)()
	if secure != nil {
		conn, err = (&tls.Dialer{NetDialer: plain, Config: secure}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = plain.DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, err
	}
	d.abortOnContextDone(func() { conn.Close() })
	return conn, nil
}

// abortOnContextDone calls abort when d.ctx is done, unless detachFromContext or stop is called
// before.
func (d *contextBoundDialer) abortOnContextDone(abort func()) (stop func() bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil {
		return func() bool { return false }
	}
	stop = context.AfterFunc(d.ctx, abort)
	d.detachFuncs = append(d.detachFuncs, stop)
	return stop
}

// detachFromContext keeps the dialed connections open when d.ctx is done.
func (d *contextBoundDialer) detachFromContext() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, stop := range d.detachFuncs {
		stop()
	}
	d.ctx, d.detachFuncs = nil, nil
}
