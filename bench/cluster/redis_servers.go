package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum/storage/redis"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// startCluster starts servers that write what is changed to a file, as they should.
func startCluster(dir string, masters, replicas int) (*redistest.Cluster, error) {
	return redistest.Run(context.Background(), dir, masters, replicas, "--appendfsync", "everysec")
}

// stores numbers the stores, which share servers.
var stores atomic.Int64

func newPrefix() string { return fmt.Sprintf("bench%d", stores.Add(1)) }

// open opens a store that is as durable as the servers can make it.
func open(c *redistest.Cluster, prefix string, replicas int) (*redis.Store, error) {
	opts := redis.Options{Addresses: c.Addrs(), Prefix: prefix, Durability: redis.None}
	if replicas > 0 {
		opts.Durability = redis.Replica
	}
	return redis.Open(context.Background(), opts)
}

// A processor is the time that processors have spent.
type processor struct{ here, servers time.Duration }

func (p processor) minus(q processor) processor {
	return processor{p.here - q.here, p.servers - q.servers}
}

func (p processor) plus(q processor) processor {
	return processor{p.here + q.here, p.servers + q.servers}
}

// spent returns the processor time of this process and of all servers until now.
func spent(c *redistest.Cluster) (p processor, err error) {
	if p.here, err = processTime("self"); err != nil {
		return p, err
	}
	for _, n := range c.Nodes() {
		t, err := processTime(strconv.Itoa(n.PID()))
		if err != nil {
			return p, err
		}
		p.servers += t
	}
	return p, nil
}

// processTime returns user and system time of a process: proc(5), /proc/pid/stat,
// fields 14 and 15, in ticks of which Linux has a hundred a second.
func processTime(pid string) (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name of the program may hold blanks
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%s/stat: %q", pid, text)
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/%s/stat: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100, nil
}

// usedMemory returns how many bytes a server uses.
func usedMemory(n *redistest.Node) (int, error) {
	text, err := n.Do(context.Background(), "INFO", "memory")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(text, "used_memory:")
	number, _, _ := strings.Cut(rest, "\r")
	return strconv.Atoi(number)
}
