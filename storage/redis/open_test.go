package redis

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// wantOpenError fails the test unless Open returns an error that contains want.
func wantOpenError(t *testing.T, opts Options, want string) {
	t.Helper()
	opts.Timeout = time.Second
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, err := Open(ctx, opts)
	if err == nil {
		s.Close()
		t.Fatalf("Open returned no error, want %q", want)
	}
	if !strings.Contains(err.Error(), want) {
		t.Errorf("error %q, want %q in it", err, want)
	}
}

// Open returns an error that names the invalid option.
func TestOpenRefusesOptionsThatMakeNoSense(t *testing.T) {
	at := []string{"127.0.0.1:1"}
	for why, opts := range map[string]Options{
		"no address":         {Prefix: "p"},
		"prefix":             {Addresses: at, Prefix: "a{b}"},
		"partitions":         {Addresses: at, Prefix: "p", Partitions: MaxPartitions + 1},
		`durability "hope"`:  {Addresses: at, Prefix: "p", Durability: "hope"},
		"cannot reach Redis": {Addresses: at, Prefix: "p"},
	} {
		wantOpenError(t, opts, why)
	}
}

// Open returns an error that names the requirement that the servers do not meet.
func TestOpenSaysWhatServersLack(t *testing.T) {
	t.Parallel()
	t.Run("replicas", func(t *testing.T) {
		t.Parallel()
		c := redistest.StartClusterForTest(t, 1, 0)
		wantOpenError(t, Options{Addresses: c.Addrs(), Prefix: "p"}, "it has no replica")
		s, err := Open(t.Context(), Options{Addresses: c.Addrs(), Prefix: "p",
			Durability: DurabilityNone, Partitions: 8})
		must(t, err)
		must(t, s.Close())
		for _, n := range []int{1, 9, 64} { // the first partition may have another hash tag
			wantOpenError(t, Options{Addresses: c.Addrs(), Prefix: "p", Durability: DurabilityNone, Partitions: n},
				"was made with partitions 8")
		}
		_, err = c.Nodes()[0].Do(t.Context(), "CONFIG", "SET", "requirepass", "secret")
		must(t, err)
		wantOpenError(t, Options{Addresses: c.Addrs(), Prefix: "p", Durability: DurabilityNone}, "NOAUTH")
		wantOpenError(t, Options{Addresses: c.Addrs(), Prefix: "p", Durability: DurabilityNone, Password: "wrong"},
			"WRONGPASS")
		s, err = Open(t.Context(), Options{Addresses: c.Addrs(), Prefix: "p", Durability: DurabilityNone,
			Password: "secret", Partitions: 8})
		must(t, err)
		must(t, s.Close())
	})
	t.Run("memory that is kept", func(t *testing.T) {
		t.Parallel()
		c := redistest.StartClusterForTest(t, 1, 0, "--maxmemory-policy", "allkeys-lru")
		wantOpenError(t, Options{Addresses: c.Addrs(), Prefix: "p", Durability: DurabilityNone},
			"maxmemory-policy is allkeys-lru")
	})
	t.Run("a disk", func(t *testing.T) {
		t.Parallel()
		c := redistest.StartClusterForTest(t, 1, 1)
		wantOpenError(t, Options{Addresses: c.Addrs(), Prefix: "p", Durability: DurabilityDisk}, "appendfsync always")
	})
	t.Run("all slots", func(t *testing.T) {
		t.Parallel()
		c := redistest.StartClusterForTest(t, 3, 0)
		c.KillNode(c.Nodes()[2])
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		must(t, c.Nodes()[0].DoUntil(ctx, "cluster_state:fail", "CLUSTER", "INFO"))
		wantOpenError(t, Options{Addresses: c.Addrs()[:1], Prefix: "p", Durability: DurabilityNone},
			"the cluster is in state fail")
	})
}

// The end of its context ends Open while servers do not answer, whatever Timeout is.
func TestOpenIsCanceled(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 0)
	must(t, c.Nodes()[0].Signal(syscall.SIGSTOP))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	opened := make(chan error, 1)
	go func() {
		_, err := Open(ctx, Options{Addresses: c.Addrs(), Prefix: newPrefix(), Timeout: time.Hour})
		opened <- err
	}()
	select {
	case err := <-opened:
		if !errors.Is(err, storage.ErrWriteStalled) {
			t.Errorf("%v, want that the servers do not answer", err)
		}
	case <-time.After(time.Minute):
		t.Error("Open still waits after one minute")
	}
}

// A store and its connections outlive the context that was given to Open.
func TestOpenOutlivesItsContext(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 0)
	ctx, cancel := context.WithCancel(t.Context())
	s := must1(Open(ctx, Options{Addresses: c.Addrs(), Prefix: newPrefix(), Durability: DurabilityNone}))
	t.Cleanup(func() { s.Close() })
	connections := func() int { // number of connections that the server has ever accepted
		return int(serverNumber(t, c.Nodes()[0], "stats", "total_connections_received"))
	}
	must1(s.Counts(t.Context()))
	before := connections()
	cancel()
	must1(s.Counts(t.Context()))
	if newConnections := connections() - before - 1; newConnections != 0 {
		t.Errorf("%d connections were made after the context ended, want 0", newConnections)
	}
}

// Close returns although no server answers, whatever Timeout is.
func TestCloseWithoutServers(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 1)
	s := openServerClock(t, c, newPrefix(), Options{Partitions: 8, Timeout: time.Hour})
	must1(s.Add(t.Context(), pageEntries(8, 1), 0))
	waitForLease(t, s, time.Minute)
	for _, n := range c.Nodes() {
		must(t, n.Signal(syscall.SIGSTOP))
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		if !errors.Is(err, storage.ErrWriteStalled) {
			t.Errorf("%v, want that the servers do not answer", err)
		}
	case <-time.After(time.Minute):
		t.Error("Close still waits after one minute")
	}
}
