package client

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// partitionServers knows which server has which partition, so that calls to one server can share a
// connection. If the server of a partition is unknown, the partition is called separately, and
// rueidis finds the server.
type partitionServers struct {
	conn       rueidis.Client
	partitions []*Partition
	timeout    time.Duration

	mu         sync.Mutex            // guards addrOf and lastLookup
	addrOf     map[*Partition]string // address of the server, as conn.Nodes names it
	lastLookup time.Time             // when lookUp last began
}

// minLookupInterval is the shortest time between two calls of lookUp.
const minLookupInterval = time.Second

// addrsOfCalls returns the address of the server of each call, or an empty string if it is unknown.
// It asks the cluster if an address is unknown and the last lookup is long enough ago.
func (s *partitionServers) addrsOfCalls(ctx context.Context, calls []ScriptCall) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range calls {
		if s.addrOf[c.Partition] == "" && time.Since(s.lastLookup) >= minLookupInterval {
			s.lastLookup = time.Now()
			s.addrOf = s.lookUp(ctx)
		}
	}
	addresses := make([]string, len(calls))
	for i, c := range calls {
		addresses[i] = s.addrOf[c.Partition]
	}
	return addresses
}

// forget removes the address of a partition, which may have moved to another server.
func (s *partitionServers) forget(p *Partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.addrOf, p)
}

// lookUp asks the cluster which server has which partition. It leaves out partitions whose server
// the reply does not name in the expected form.
func (s *partitionServers) lookUp(ctx context.Context) map[*Partition]string {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	addrOf := make(map[*Partition]string)
	slotRanges, err := s.conn.Do(ctx, s.conn.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return addrOf
	}
	for _, m := range slotRanges {
		slotRange := NewReplyReader(m)
		first, last := slotRange.ReadInt(), slotRange.ReadInt()
		master, _ := slotRange.ReadElement()
		server := NewReplyReader(master)
		address := net.JoinHostPort(server.ReadString(), strconv.FormatInt(server.ReadInt(), 10))
		if slotRange.err != nil || server.err != nil {
			continue // the partitions of this range stay unknown
		}
		for _, p := range s.partitions {
			if first <= p.slot && p.slot <= last {
				addrOf[p] = address
			}
		}
	}
	return addrOf
}

// A callsForServer is the calls that go to one server.
type callsForServer struct {
	node    rueidis.Client // nil if the server is unknown
	indexes []int          // the indexes of the calls
}

// groupCalls groups calls by their servers. Each call whose server is unknown is a separate group.
func (s *partitionServers) groupCalls(ctx context.Context, calls []ScriptCall) []*callsForServer {
	nodes := s.conn.Nodes()
	var all []*callsForServer
	current := make(map[rueidis.Client]*callsForServer)
	for i, address := range s.addrsOfCalls(ctx, calls) {
		g := current[nodes[address]]
		if g == nil {
			g = &callsForServer{node: nodes[address]}
			all = append(all, g)
		}
		if g.node != nil {
			current[g.node] = g
		}
		g.indexes = append(g.indexes, i)
	}
	return all
}
