package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/rueidis"
)

// Open opens the store whose keys begin with Options.Prefix, and makes it if there
// is none. It returns an error if no server answers, or if one is not as a store
// needs it: see the package's documentation. The error wraps storage.ErrWriteStalled if
// the servers may be in order a moment later, without anybody changing a setting of
// ours. Close must be called in the end.
func Open(ctx context.Context, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	conn, err := connect(ctx, rueidis.ClientOption{
		InitAddress: opts.Addresses, Username: opts.Username, Password: opts.Password, TLSConfig: opts.TLS,
		ClientName: "decorum", Dialer: net.Dialer{Timeout: opts.Timeout}, ConnWriteTimeout: opts.Timeout,
		PipelineMultiplex: -1, CacheSizeEachConn: opts.NoteCacheBytes,
	})
	if err != nil {
		return nil, asTransient(fmt.Errorf("cannot reach Redis at %s: %w", strings.Join(opts.Addresses, ", "), err))
	}
	c := newClusterClient(conn, &opts)
	s := &Store{opts: opts, client: c, leaseTTLs: newLeaseTTLRecorder(c), heldLeases: make(map[uint64]heldLease)}
	if err := checkServers(ctx, conn.Nodes(), opts.Durability); err != nil {
		conn.Close()
		return nil, err
	}
	if err := ensureFormat(ctx, c, &opts); err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
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

// keyFormat is that of the keys.
const keyFormat = "1"

// ensureFormat notes format and partitions in a new store, and compares them in another.
func ensureFormat(ctx context.Context, c *clusterClient, opts *Options) error {
	key := opts.Prefix + ":store" // wherever partitions are: that is what is asked
	for field, want := range map[string]string{"format": keyFormat, "partitions": fmt.Sprint(opts.Partitions)} {
		got, err := c.setHashFieldOnce(ctx, key, field, want)
		if err != nil {
			return asTransient(fmt.Errorf("store %s: %w", opts.Prefix, err))
		}
		if got != want {
			return fmt.Errorf("store %s was made with %s %s, and is opened with %s", opts.Prefix, field, got, want)
		}
	}
	return nil
}
