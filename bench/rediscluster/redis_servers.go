package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/decorum-crawler/decorum/storage/redis"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// startCluster starts servers that append changes to a file every second, as for production.
func startCluster(dir string, masters, replicas int) (*redistest.Cluster, error) {
	return redistest.StartCluster(context.Background(), dir, masters, replicas, "--appendfsync", "everysec")
}

// storeCount is the number of key prefixes made so far.
var storeCount atomic.Int64

// newKeyPrefix returns a new prefix, which separates the stores on the same servers.
func newKeyPrefix() string { return fmt.Sprintf("bench%d", storeCount.Add(1)) }

// openRedis opens a store with the highest durability that the servers support: with replicas,
// DurabilityReplica.
func openRedis(c *redistest.Cluster, prefix string, replicas int) (*redis.Store, error) {
	opts := redis.Options{Addresses: c.Addrs(), Prefix: prefix, Durability: redis.DurabilityNone}
	if replicas > 0 {
		opts.Durability = redis.DurabilityReplica
	}
	return redis.Open(context.Background(), opts)
}
