package redis

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/decorum-crawler/decorum/internal/testwait"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
	"github.com/decorum-crawler/decorum/storage/storagetest"
)

// TestMain skips the examples, which cannot skip themselves, where redistest cannot start a cluster.
func TestMain(m *testing.M) {
	_, err := exec.LookPath("redis-server")
	if l, listenErr := net.Listen("tcp", "127.77.0.1:0"); listenErr != nil {
		err = listenErr
	} else {
		l.Close()
	}
	if err != nil {
		flag.Set("test.skip", "^Example")
	}
	testwait.SetTestParallelism(8)
	m.Run()
}

// lastPrefix makes the prefixes of test stores unique, because stores share servers.
var lastPrefix atomic.Int64

// newPrefix returns an unused prefix.
func newPrefix() string { return fmt.Sprintf("test%d", lastPrefix.Add(1)) }

// openCallerClock opens a store whose time is the latest that a call was given.
func openCallerClock(t testing.TB, c *redistest.Cluster, prefix string, opts Options) *Store {
	t.Helper()
	opts.Addresses, opts.Prefix, opts.usesCallerTime = c.Addrs(), prefix, true
	s, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A Store passes the specification of package storagetest.
func TestStore(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 3, 1)
	storagetest.Run(t, func(t testing.TB) storage.Store {
		return openCallerClock(t, c, newPrefix(), Options{Partitions: 3})
	})
}

// serverNumber returns a number from INFO.
func serverNumber(t testing.TB, n *redistest.Node, section, field string) float64 {
	t.Helper()
	text := must1(n.Do(context.Background(), "INFO", section))
	_, rest, ok := strings.Cut(text, field+":")
	if !ok {
		t.Fatalf("no %s in %q", field, text)
	}
	number, _, _ := strings.Cut(rest, "\r")
	return must1(strconv.ParseFloat(number, 64))
}
