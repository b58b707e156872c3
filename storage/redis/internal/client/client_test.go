package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/decorum-crawler/decorum/internal/testwait"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

func TestMain(m *testing.M) {
	testwait.SetTestParallelism(8)
	m.Run()
}

// lastPrefix makes the prefixes of test stores unique.
var lastPrefix atomic.Int64

// testConfig returns a configuration for a new store on a cluster.
func testConfig(c *redistest.Cluster, partitions int, durability string) Config {
	return Config{
		Addresses: c.Addrs(), Prefix: fmt.Sprintf("test%d", lastPrefix.Add(1)),
		Partitions: partitions, Durability: durability,
		CacheBytes: 1 << 20, Timeout: time.Second, OnStallChange: func(error) {},
	}
}

func openTestClient(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := Open(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { c.Close(func() error { return nil }) })
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// noteArgs returns arguments of set_note.lua that set a note "key".
func noteArgs(origin, value string) []string { return []string{origin, "", "key", value} }

// A client reads what another has written; RunUpdate keeps the summary of its partition; a client
// learns which partitions another has changed; Close returns the error of its last function.
func TestClient(t *testing.T) {
	t.Parallel()
	cfg := testConfig(redistest.StartClusterForTest(t, 3, 1), 6, DurabilityReplica)
	c, other := openTestClient(t, cfg), openTestClient(t, cfg)
	for i, p := range c.Partitions() {
		_, retried, err := c.RunUpdate(t.Context(), p, true, lua.SetNote, noteArgs("", strconv.Itoa(i))...)
		must(t, err)
		if sum, up := p.LastSummary(); retried || !up || sum.Version < 0 {
			t.Errorf("partition %d: retried %t, reachable %t, summary %+v", i, retried, up, sum)
		}
		value, err := other.CachedHashField(t.Context(), other.Partitions()[i], "n:", "key", time.Minute)
		must(t, err)
		if string(value) != strconv.Itoa(i) {
			t.Errorf("partition %d holds %q", i, value)
		}
	}
	if n := c.Partitions().Reachable(); n != 6 {
		t.Errorf("%d partitions are reachable, want 6", n)
	}
	if changed := other.ChangedOrUnreachablePartitions(t.Context()); len(changed) != 6 {
		t.Errorf("%d partitions have changed for a client without summaries, want 6", len(changed))
	}
	must(t, other.RefreshSummaries(t.Context(), lua.Summary))
	if changed := other.ChangedOrUnreachablePartitions(t.Context()); len(changed) != 0 {
		t.Errorf("%d partitions have changed since the refresh, want 0", len(changed))
	}
	closed := errors.New("the last call")
	if err := c.Close(func() error { return closed }); err != closed {
		t.Errorf("Close returns %v, want %v", err, closed)
	}
	if _, _, err := c.BeginCall(t.Context()); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("a call begins after Close with %v", err)
	}
}

// ConfirmEarlierUpdates waits until a replica has confirmed an earlier update, and does nothing the
// next time. OnStallChange gets the stall and its end.
func TestConfirmEarlierUpdates(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartClusterForTest(t, 1, 1)
	cfg, stalls := testConfig(cluster, 1, DurabilityReplica), make(chan error, 100)
	cfg.Timeout, cfg.OnStallChange = 300*time.Millisecond, func(err error) { stalls <- err }
	c, replica := openTestClient(t, cfg), cluster.Nodes()[1]
	confirm := func(ctx context.Context) error {
		return c.ConfirmEarlierUpdates(ctx, lua.SetNote, noteArgs("", "confirmed")...)
	}
	must(t, replica.Signal(syscall.SIGSTOP))
	must(t, confirm(t.Context())) // nothing has changed
	_, _, err := c.RunUpdate(t.Context(), c.Partitions()[0], false, lua.SetNote, noteArgs("", "x")...)
	must(t, err)
	confirmed := make(chan error, 1)
	go func() { confirmed <- confirm(t.Context()) }()
	if err := <-stalls; !errors.Is(err, errNotReplicated) {
		t.Errorf("OnStallChange got %v, want %v", err, errNotReplicated)
	}
	must(t, replica.Signal(syscall.SIGCONT))
	must(t, <-confirmed)
	if err := <-stalls; err != nil {
		t.Errorf("OnStallChange got %v when all servers answer again, want nil", err)
	}
	must(t, replica.Signal(syscall.SIGSTOP))
	must(t, confirm(t.Context())) // the change is confirmed already
	must(t, replica.Signal(syscall.SIGCONT))
}

// startTransport returns a transport to a cluster.
func startTransport(t *testing.T, cluster *redistest.Cluster, partitions Partitions) *scriptTransport {
	t.Helper()
	conn, err := connect(t.Context(), rueidis.ClientOption{InitAddress: cluster.Addrs(), PipelineMultiplex: -1})
	must(t, err)
	t.Cleanup(conn.Close)
	return &scriptTransport{
		conn: conn, clock: &ScriptClock{}, timeout: 500 * time.Millisecond, awaitsReplicas: true,
		servers: &partitionServers{conn: conn, partitions: partitions, timeout: time.Second},
	}
}

// A transport sends the text of a script to servers that do not know it, and returns an error for a
// durable call if no replica confirms it.
func TestScriptTransport(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartClusterForTest(t, 3, 1)
	partitions := makePartitions("p", 6)
	tr := startTransport(t, cluster, partitions)
	calls := CallsTo(partitions, noteArgs("", "x")...)
	for _, try := range []func() []scriptReply{
		func() []scriptReply { return tr.tryBatch(t.Context(), false, lua.SetNote, calls) },
		func() []scriptReply { return tr.tryBatch(t.Context(), true, lua.SetNote, calls) },
	} {
		for _, n := range cluster.Nodes()[:3] {
			if _, err := n.Do(t.Context(), "SCRIPT", "FLUSH"); err != nil {
				t.Fatal(err)
			}
		}
		for i, r := range try() {
			if r.err != nil {
				t.Errorf("partition %d: %v", i, r.err)
			}
		}
	}
	for _, n := range cluster.Nodes()[3:] {
		must(t, n.Signal(syscall.SIGSTOP))
	}
	for i, r := range tr.tryBatch(t.Context(), true, lua.SetNote, calls) {
		if !errors.Is(r.err, errNotReplicated) {
			t.Errorf("partition %d: %v, want %v", i, r.err, errNotReplicated)
		}
	}
	if _, err := tr.try(t.Context(), true, partitions[0], lua.SetNote,
		noteArgs("", "x")...); !errors.Is(err, errNotReplicated) {
		t.Errorf("%v, want %v", err, errNotReplicated)
	}
	if _, err := tr.try(t.Context(), false, partitions[0], lua.SetNote, noteArgs("", "x")...); err != nil {
		t.Errorf("a call that need not be confirmed: %v", err)
	}
}

// partitionServers knows the servers that the cluster names. It looks up a forgotten server again, but
// not before minLookupInterval has passed.
func TestPartitionServers(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartClusterForTest(t, 3, 0)
	partitions := makePartitions("p", 6)
	s := startTransport(t, cluster, partitions).servers
	calls := CallsTo(partitions)
	for i, addr := range s.addrsOfCalls(t.Context(), calls) {
		if want := cluster.Nodes()[i/2].Addr; addr != want {
			t.Errorf("partition %d is at %q, want %q", i, addr, want)
		}
	}
	if groups := s.groupCalls(t.Context(), calls); len(groups) != 3 {
		t.Errorf("calls are for %d servers, want 3", len(groups))
	}
	s.forget(partitions[0])
	if addr := s.addrsOfCalls(t.Context(), calls[:1])[0]; addr != "" {
		t.Errorf("the cluster was asked again at once, and named %q", addr)
	}
	if groups := s.groupCalls(t.Context(), calls[:2]); len(groups) != 2 || groups[0].node != nil {
		t.Errorf("%d groups of a partition with an unknown server and one with a known server, want 2", len(groups))
	}
	s.lastLookup = time.Now().Add(-minLookupInterval)
	if addr := s.addrsOfCalls(t.Context(), calls[:1])[0]; addr != cluster.Nodes()[0].Addr {
		t.Errorf("the forgotten partition is at %q", addr)
	}
}
