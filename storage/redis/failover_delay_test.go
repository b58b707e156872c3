package redis

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// A failoverPair is a cluster of three masters with one replica each, and the master and replica of
// the first of three partitions.
type failoverPair struct {
	*redistest.Cluster
	master, replica *redistest.Node
}

func startFailoverPair(t *testing.T) *failoverPair {
	c := redistest.StartClusterForTest(t, 3, 1)
	return &failoverPair{c, c.Nodes()[0], c.Nodes()[3]}
}

// failOver makes the replica take over while its master runs, without loss.
func (p *failoverPair) failOver(t *testing.T) {
	t.Helper()
	must1(p.replica.Do(t.Context(), "CLUSTER", "FAILOVER"))
	p.master, p.replica = p.replica, p.master
	must(t, p.replica.DoUntil(t.Context(), "master_link_status:up", "INFO", "replication"))
	p.WaitReady()
}

// stopReplica pauses the replica, so that it misses all later writes of its master.
func (p *failoverPair) stopReplica(t *testing.T) {
	t.Helper()
	must(t, p.replica.Signal(syscall.SIGSTOP))
	must1(p.master.Do(t.Context(), "CLIENT", "KILL", "TYPE", "replica"))
}

// killMaster kills the master, resumes the paused replica, which takes over, and restarts the old
// master as its replica.
func (p *failoverPair) killMaster(t *testing.T) {
	t.Helper()
	p.KillNode(p.master)
	must(t, p.replica.Signal(syscall.SIGCONT))
	p.AwaitMasters(3)
	p.StartKilledNode(p.master)
	p.master, p.replica = p.replica, p.master
	p.WaitReady()
}

// openStore opens a store of three partitions.
func (p *failoverPair) openStore(t *testing.T, prefix string) *Store {
	t.Helper()
	return openServerClock(t, p.Cluster, prefix,
		Options{Partitions: 3, Timeout: time.Second, PartitionRefreshInterval: 20 * time.Millisecond,
			PostInterruptionDelay: time.Millisecond})
}

// openFilledStore opens a store and adds each pages of one host of the first partition.
func (p *failoverPair) openFilledStore(t *testing.T, prefix string, each int) *Store {
	t.Helper()
	s := p.openStore(t, prefix)
	for h := 0; ; h++ {
		if first := pageEntry(fmt.Sprintf("https://h%d.example/",
			h)); s.client.PartitionOfHost(first.URL.Origin().Host()) == s.client.Partitions()[0] {
			for i := range each {
				must1(s.Add(t.Context(), []storage.Entry{pageEntry(fmt.Sprintf("%v%d", first.URL, i))}, 0))
			}
			return s
		}
	}
}

// A replica takes over without the last writes of its master. It gives no lease again before the
// master's leases have expired, and it keeps a long rest of a host, which it has confirmed.
func TestFailoverWithLostWrites(t *testing.T) {
	t.Parallel()
	const long = time.Minute
	p := startFailoverPair(t)
	prefix := newPrefix()
	// The first store has leased in the first partition before the planned failover.
	before := p.openFilledStore(t, prefix, 2)
	must(t, before.Ack(t.Context(), []storage.Ack{{Lease: waitForLease(t, before, long)}}))
	p.failOver(t)
	served, untouched, briefly, delayed := p.openStore(t, prefix), p.openFilledStore(t, newPrefix(), 1),
		p.openFilledStore(t, newPrefix(), 2), p.openFilledStore(t, newPrefix(), 1)
	must(t, briefly.Ack(t.Context(), []storage.Ack{{Lease: waitForLease(t, briefly, time.Millisecond)}}))
	visit := waitForLease(t, delayed, long)
	// From here on the replica misses the leases that the master gives.
	p.stopReplica(t)
	ends := map[*Store]time.Time{}
	for _, s := range []*Store{untouched, briefly, served} {
		leases, _, err := s.Lease(t.Context(), time.Now(), long, 1)
		must(t, err)
		if len(leases) > 0 {
			ends[s] = leases[0].Expires
		}
	}
	acked := p.ackWithDelay(t, delayed, visit, time.Hour)
	p.killMaster(t)
	must(t, <-acked)
	if i, _, err := delayed.Origin(t.Context(), visit.URL.Origin()); err != nil ||
		time.Until(i.HostState.Due) < time.Hour/2 {
		t.Errorf("a host that rests for one hour is due in %v (%v)", time.Until(i.HostState.Due), err)
	}
	for name, s := range map[string]*Store{"a partition without leases before": untouched,
		"a partition with short leases before": briefly} {
		switch leases, _ := leaseWhenAllReachable(t, s, long); {
		case len(leases) > 0 && time.Now().Before(ends[s]):
			t.Errorf("%s: a host was leased a second time %v before its first lease expired", name, time.Until(ends[s]))
		case len(leases) == 0 && ends[s].IsZero():
			t.Errorf("%s: it gives no lease, and gave none before", name)
		}
	}
	if leases, next := leaseWhenAllReachable(t, served, long); len(leases) > 0 || time.Until(next.Until) < long/2 {
		t.Errorf("a server that was master before gives %d leases, and the next at %v, though it lacks the last "+
			"master's leases", len(leases), next.Until)
	}
}

// ackWithDelay acks a visit after which its host rests for length. It returns when the master has the
// due time; acked gets the result of the Ack.
func (p *failoverPair) ackWithDelay(t *testing.T, s *Store, visit storage.Lease,
	length time.Duration) (acked chan error) {
	t.Helper()
	acked = make(chan error, 1)
	go func() {
		acked <- s.Ack(t.Context(), []storage.Ack{{Lease: visit,
			HostState: &storage.HostState{Due: time.Now().Add(length), LostVisitDelay: time.Second}}})
	}()
	must(t, p.master.DoUntil(t.Context(), "1", "HEXISTS", s.client.Partitions()[0].Key("h:"+visit.URL.Origin().Host()),
		"due"))
	return acked
}

// leaseWhenAllReachable calls Lease until all servers answer and it returns a lease, or a Wait of more
// than 10 s. It skips over shorter waits.
func leaseWhenAllReachable(t *testing.T, s *Store, ttl time.Duration) ([]storage.Lease, storage.Wait) {
	t.Helper()
	for {
		must(t, s.urlLeaser.summaries.refreshAll(t.Context()))
		leases, next, err := s.Lease(t.Context(), time.Now(), ttl, 1)
		must(t, err)
		if s.client.Partitions().Reachable() == len(s.client.Partitions()) &&
			(len(leases) > 0 || time.Until(next.Until) > 10*time.Second) {
			return leases, next
		}
	}
}
