package client

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// partitionServers says which server has which partition, so that what goes to one
// server can go by one connection. A partition whose server is not known is called by
// itself.
type partitionServers struct {
	conn       rueidis.Client
	partitions []*Partition
	timeout    time.Duration

	mu         sync.Mutex            // guards the fields below
	addrOf     map[*Partition]string // the address, as conn names it
	lastLookup time.Time
}

// minLookupInterval is how often the cluster is asked at most where partitions are.
const minLookupInterval = time.Second

// addrsOfCalls returns the addresses of the servers of some calls, empty where it is not known.
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

// forget notes that a partition may be with another server now.
func (s *partitionServers) forget(p *Partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.addrOf, p)
}

// lookUp asks the cluster which server has which partition. What it does not say, or says
// in another way than expected, is not known.
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
			continue
		}
		for _, p := range s.partitions {
			if first <= p.slot && p.slot <= last {
				addrOf[p] = address
			}
		}
	}
	return addrOf
}

// A callsForServer is calls, by their index, that go to one server; nil if it is not known.
type callsForServer struct {
	node    rueidis.Client
	indexes []int
}

// groupCalls sorts calls by their servers. One whose server is not known is a group.
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
