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

// A Config says where the partitions of a store are, and how they are called. All
// fields but Username, Password and TLS must be set.
type Config struct {
	Addresses          []string // of servers of the cluster: one that answers is enough
	Username, Password string
	TLS                *tls.Config // nil: connections are not encrypted
	Prefix             string      // begins the keys of all partitions
	Partitions         int
	Durability         string        // one of the constants below
	CacheBytes         int           // how much of the hashes that were read is kept in memory, of each server
	Timeout            time.Duration // how long a server may take to answer, before the call is made again
	OnStallChange      func(error)   // called with why a server does not answer, and with nil when all do again
	UsesCallerTime     bool          // whether the clock is what ScriptClock.AdvanceTo was given; for tests
}

// Values of Config.Durability: see redis.Durability.
const (
	DurabilityReplica = "replica"
	DurabilityDisk    = "disk"
	DurabilityNone    = "none"
)

// Open connects to a cluster. It returns an error if no server answers, or if
// one is not as a store needs it; the error wraps storage.ErrWriteStalled if the servers
// may be in order a moment later. The caller must call Close in the end.
func Open(ctx context.Context, cfg Config) (*Client, error) {
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

// connect returns a client that keeps what it reads in memory where the servers can tell it
// that it has changed (CLIENT TRACKING). It has one connection to a server, besides those
// of commands that wait: so a server tells of changes in order with all else.
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

// A contextBoundDialer dials for a rueidis.Client, which is made without a context. Until
// detachFromContext is called, the end of ctx closes the connections that were dialed.
type contextBoundDialer struct {
	mu          sync.Mutex      // guards the fields below
	ctx         context.Context // nil: the client is made
	detachFuncs []func() bool   // has a connection outlive ctx
}

// dial is rueidis.ClientOption.DialCtxFn.
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

// abortOnContextDone calls abort when ctx is done, unless detachFromContext or stop is
// called before.
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

// detachFromContext keeps the connections that were dialed open when ctx is done.
func (d *contextBoundDialer) detachFromContext() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, stop := range d.detachFuncs {
		stop()
	}
	d.ctx, d.detachFuncs = nil, nil
}
