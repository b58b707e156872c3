package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/decorum-crawler/decorum/internal/testwait"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
	"github.com/decorum-crawler/decorum/storage/storagetest"
)

func TestMain(m *testing.M) {
	testwait.SetTestParallelism(8)
	m.Run()
}

// lastPrefix numbers the stores of the tests, which share servers.
var lastPrefix atomic.Int64

// newPrefix returns a prefix of its own.
func newPrefix() string { return fmt.Sprintf("test%d", lastPrefix.Add(1)) }

// openCallerClock opens a store whose time is what calls are told.
func openCallerClock(t testing.TB, c *redistest.Cluster, prefix string, opts Options) *Store {
	t.Helper()
	opts.Addresses, opts.Prefix, opts.usesCallerTime = c.Addrs(), prefix, true
	s, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 3, 1)
	storagetest.Run(t, func(t testing.TB) storage.Store {
		return openCallerClock(t, c, newPrefix(), Options{Partitions: 3})
	})
}

// serverNumber returns a number that a server says of itself.
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
