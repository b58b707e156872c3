package redis

import (
	"context"
	"errors"
	"fmt"

	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
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
	c, err := client.Open(ctx, client.Config{
		Addresses: opts.Addresses, Username: opts.Username, Password: opts.Password, TLS: opts.TLS, Prefix: opts.Prefix,
		Partitions: opts.Partitions, Durability: string(opts.Durability), CacheBytes: opts.NoteCacheBytes, Timeout: opts.Timeout,
		OnStallChange: opts.OnStallChange, UsesCallerTime: opts.usesCallerTime,
	})
	if err != nil {
		return nil, err
	}
	if err := ensureFormat(ctx, c, &opts); err != nil {
		return nil, errors.Join(err, c.Close(func() error { return nil }))
	}
	held, ttls, interrupted := newHeldLeases(), newLeaseTTLRecorder(c, opts.Timeout), opts.interruptedDelay()
	summaries := &summaryRefresher{client: c, interval: opts.PartitionRefreshInterval, interruptedDelay: interrupted}
	return &Store{
		client:       c,
		flushTimeout: flushTimeouts * opts.Timeout,
		leaser:       leaser{client: c, summaries: summaries, held: held, ttls: ttls, onDamaged: opts.OnDamaged},
		leaseHolder: leaseHolder{
			client: c, held: held, ttls: ttls, interruptedDelay: interrupted, beforeAck: opts.BeforeAck,
		},
		parking:     parking{c, opts.OnDamaged},
		noteStore:   noteStore{c},
		hostCounter: hostCounter{c},
		inspector:   inspector{c},
		importer:    importer{c},
	}, nil
}

// keyFormat is that of the keys.
const keyFormat = "1"

// ensureFormat notes format and partitions in a new store, and compares them in another.
func ensureFormat(ctx context.Context, c *client.Client, opts *Options) error {
	key := opts.Prefix + ":store" // wherever partitions are: that is what is asked
	for field, want := range map[string]string{"format": keyFormat, "partitions": fmt.Sprint(opts.Partitions)} {
		got, err := c.SetHashFieldOnce(ctx, key, field, want)
		if err != nil {
			return client.AsTransient(fmt.Errorf("store %s: %w", opts.Prefix, err))
		}
		if got != want {
			return fmt.Errorf("store %s was made with %s %s, and is opened with %s", opts.Prefix, field, got, want)
		}
	}
	return nil
}
