package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
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
	UsesCallerTime     bool          // whether the clock is what Clock.AdvanceTo was given; for tests
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
		conn: conn, clock: &Clock{usesCallerTime: cfg.UsesCallerTime}, timeout: cfg.Timeout,
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

// minMajorVersion is the major version of Redis that a store needs: scripts read the clock
// and then write.
const minMajorVersion = 7

// checkServers returns an error if a master is not as a store of the given durability
// needs it. A server that does not answer is passed over: those that do answer know what
// it is to the cluster.
func checkServers(ctx context.Context, nodes map[string]rueidis.Client, durability string) error {
	masters := 0
	var silent []error
	for addr, node := range nodes {
		info, err := readServerInfo(ctx, node)
		if _, answers := rueidis.IsRedisErr(err); err != nil && !answers {
			silent = append(silent, fmt.Errorf("%s: %w", addr, err))
			continue
		}
		if err != nil {
			return AsTransient(fmt.Errorf("%s: %w", addr, err))
		}
		if info["role"] != "master" {
			continue
		}
		masters++
		if err := checkMasterSuitable(ctx, node, info, durability); err != nil {
			return fmt.Errorf("%s: %w", addr, err)
		}
	}
	if masters == 0 {
		return AsTransient(errors.Join(append(silent, errors.New("none of the servers that answer is a master"))...))
	}
	return nil
}

// checkMasterSuitable returns an error if a master is not as a store needs it.
func checkMasterSuitable(ctx context.Context, node rueidis.Client, info map[string]string, durability string) error {
	if err := checkServerVersion(info); err != nil {
		return err
	}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		return fmt.Errorf("maxmemory-policy is %s: a server that is short of memory would drop a part of the crawl; set it to noeviction", policy)
	}
	if info["cluster_enabled"] == "1" {
		state, err := node.Do(ctx, node.B().ClusterInfo().Build()).ToString()
		if err != nil {
			return err
		}
		if f := parseServerInfo(state); f["cluster_state"] != "ok" {
			return AsTransient(fmt.Errorf("the cluster is in state %s (%s of %s slots are served): repair it first",
				f["cluster_state"], f["cluster_slots_ok"], f["cluster_slots_assigned"]))
		}
	}
	return checkServerDurability(ctx, node, info, durability)
}

// checkServerVersion returns an error if the server is too old. Valkey and Kvrocks name
// their own versions beside one of Redis that they are compatible with.
func checkServerVersion(info map[string]string) error {
	if info["valkey_version"] != "" || info["kvrocks_version"] != "" {
		return nil
	}
	version := info["redis_version"]
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < minMajorVersion {
		return fmt.Errorf("version %s of the server is too old: Redis %d.0 or newer is needed", version, minMajorVersion)
	}
	return nil
}

// checkServerDurability returns an error if the server cannot keep what it must.
func checkServerDurability(ctx context.Context, node rueidis.Client, info map[string]string, durability string) error {
	if durability == DurabilityNone {
		return nil
	}
	if info["connected_slaves"] == "0" {
		return AsTransient(fmt.Errorf("it has no replica, which durability %s needs: add one, or set durability to %s", durability, DurabilityNone))
	}
	if durability != DurabilityDisk {
		return nil
	}
	values, err := node.Do(ctx, node.B().ConfigGet().Parameter("appendfsync").Build()).AsStrMap()
	if err != nil {
		return fmt.Errorf("durability %s: %w", DurabilityDisk, err)
	}
	if info["aof_enabled"] != "1" || values["appendfsync"] != "always" {
		return fmt.Errorf("durability %s needs appendonly yes and appendfsync always", DurabilityDisk)
	}
	return nil
}

// readServerInfo returns what a server says of itself.
func readServerInfo(ctx context.Context, node rueidis.Client) (map[string]string, error) {
	text, err := node.Do(ctx, node.B().Info().Section("server", "memory", "replication", "persistence", "cluster").Build()).ToString()
	return parseServerInfo(text), err
}

// parseServerInfo reads lines of the form name:value. Before them may stand that they
// are text (RESP3, verbatim string).
func parseServerInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(strings.TrimPrefix(text, "txt:")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}
