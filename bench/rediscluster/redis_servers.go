package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/decorum-crawler/decorum/storage/redis"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// startCluster starts servers that write what is changed to a file, as they should.
func startCluster(dir string, masters, replicas int) (*redistest.Cluster, error) {
	return redistest.StartCluster(context.Background(), dir, masters, replicas, "--appendfsync", "everysec")
}

// storeCount numbers the stores, which share servers.
var storeCount atomic.Int64

func newKeyPrefix() string { return fmt.Sprintf("bench%d", storeCount.Add(1)) }

// openRedis opens a store that is as durable as the servers can make it.
func openRedis(c *redistest.Cluster, prefix string, replicas int) (*redis.Store, error) {
	opts := redis.Options{Addresses: c.Addrs(), Prefix: prefix, Durability: redis.DurabilityNone}
	if replicas > 0 {
		opts.Durability = redis.DurabilityReplica
	}
	return redis.Open(context.Background(), opts)
}
