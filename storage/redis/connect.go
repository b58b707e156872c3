package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// A clusterConfig says where the partitions of a store are, and how they are called. All
// fields but username, password and tls must be set.
type clusterConfig struct {
	addresses          []string // of servers of the cluster: one that answers is enough
	username, password string
	tls                *tls.Config // nil: connections are not encrypted
	prefix             string      // begins the keys of all partitions
	partitions         int
	durability         string        // one of the constants below
	cacheBytes         int           // how much of the hashes that were read is kept in memory, of each server
	timeout            time.Duration // how long a server may take to answer, before the call is made again
	onStallChange      func(error)   // called when a server does not answer, with the reason, and with nil when all answer again
	usesCallerTime     bool          // whether the clock is what scriptClock.advanceTo was given; for tests
}

// What a durable call has seen before it returns: see redis.Durability.
const (
	durabilityReplica = "replica"
	durabilityDisk    = "disk"
	durabilityNone    = "none"
)

// openClusterClient connects to a cluster. It returns an error if no server answers, or if
// one is not as a store needs it; the error wraps storage.ErrWriteStalled if the servers
// may be in order a moment later. The caller must call close in the end.
func openClusterClient(ctx context.Context, cfg clusterConfig) (*clusterClient, error) {
	conn, err := connect(ctx, rueidis.ClientOption{
		InitAddress: cfg.addresses, Username: cfg.username, Password: cfg.password, TLSConfig: cfg.tls,
		ClientName: "decorum", Dialer: net.Dialer{Timeout: cfg.timeout}, ConnWriteTimeout: cfg.timeout,
		PipelineMultiplex: -1, CacheSizeEachConn: cfg.cacheBytes,
	})
	if err != nil {
		return nil, asTransient(fmt.Errorf("cannot reach Redis at %s: %w", strings.Join(cfg.addresses, ", "), err))
	}
	if err := checkServers(ctx, conn.Nodes(), cfg.durability); err != nil {
		conn.Close()
		return nil, err
	}
	return newClusterClient(conn, &cfg), nil
}

// connect returns a client that keeps notes in memory where the servers can tell it
// that they have changed (CLIENT TRACKING). It has one connection to a server, besides
// those of what waits: what it says of notes so comes in order with all else.
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
