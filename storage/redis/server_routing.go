package redis

import (
	"cmp"
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// routeTable say which server has which partition, so that what goes to one server can go
// by one connection. A partition of which that is not known is called by itself.
type routeTable struct {
	mu         sync.Mutex
	addrOf     map[*partition]string // the address, as the client names it
	lastLookup time.Time
}

// minLookupInterval is how often the cluster is asked at most where partitions are.
const minLookupInterval = time.Second

// serverAddrsOfCalls returns the addresses of the servers of some calls, empty where it is not known.
func (s *Store) serverAddrsOfCalls(ctx context.Context, calls []scriptCall) []string {
	s.routes.mu.Lock()
	defer s.routes.mu.Unlock()
	for _, c := range calls {
		if s.routes.addrOf[c.partition] == "" && time.Since(s.routes.lastLookup) >= minLookupInterval {
			s.routes.lastLookup = time.Now()
			s.routes.addrOf = s.findPartitionServers(ctx)
		}
	}
	addresses := make([]string, len(calls))
	for i, c := range calls {
		addresses[i] = s.routes.addrOf[c.partition]
	}
	return addresses
}

// forgetPartition notes that a partition may be with another server now.
func (r *routeTable) forgetPartition(p *partition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.addrOf, p)
}

// findPartitionServers asks the cluster which server has which partition. What it does not say,
// or says in another way than expected, is not known.
func (s *Store) findPartitionServers(ctx context.Context) map[*partition]string {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	addrOf := make(map[*partition]string)
	slotRanges, err := s.client.Do(ctx, s.client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return addrOf
	}
	for _, m := range slotRanges {
		slotRange := newReplyListReader(m)
		first, last := slotRange.readInt(), slotRange.readInt()
		master, _ := slotRange.readElement()
		server := newReplyListReader(master)
		address := net.JoinHostPort(server.readString(), strconv.FormatInt(server.readInt(), 10))
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

// A serverCallGroup is calls, by their index, that go to one server; nil if it is not known.
type serverCallGroup struct {
	node    rueidis.Client
	indexes []int
}

// groupCallsByServer sorts calls by their servers. One whose server is not known is a group.
func (s *Store) groupCallsByServer(ctx context.Context, calls []scriptCall) []*serverCallGroup {
	nodes := s.client.Nodes()
	var all []*serverCallGroup
	current := make(map[rueidis.Client]*serverCallGroup)
	for i, address := range s.serverAddrsOfCalls(ctx, calls) {
		g := current[nodes[address]]
		if g == nil {
			g = &serverCallGroup{node: nodes[address]}
			all = append(all, g)
		}
		if g.node != nil {
			current[g.node] = g
		}
		g.indexes = append(g.indexes, i)
	}
	return all
}

// tryScriptCallsDurably is tryScriptCalls for what must not be lost: see tryScriptDurably. Calls to one server
// go by one connection, and wait together until a replica has confirmed all of them.
func (s *Store) tryScriptCallsDurably(ctx context.Context, sc *lua.Script, calls []scriptCall) []scriptReply {
	if s.opts.Durability == DurabilityNone {
		return s.tryScriptCalls(ctx, sc, calls)
	}
	replies := make([]scriptReply, len(calls))
	for i := range replies {
		replies[i].err = errNotReplicated // if it is not made any more, because ctx is done
	}
	inParallel(ctx, s.groupCallsByServer(ctx, calls), func(g *serverCallGroup) error {
		s.tryServerCalls(ctx, sc, calls, g, replies)
		return nil // each call has an error of its own
	})
	return replies
}

// tryServerCalls makes the calls of a group. The client takes a connection of its own for what
// waits, and sends all of it by that.
func (s *Store) tryServerCalls(ctx context.Context, sc *lua.Script, calls []scriptCall, g *serverCallGroup, replies []scriptReply) {
	limited, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	if g.node != nil {
		groupCalls := make([]scriptCall, len(g.indexes))
		for k, i := range g.indexes {
			groupCalls[k] = calls[i]
		}
		results := g.node.DoMulti(limited, append(s.newScriptCommands(sc, groupCalls), s.replicaWaitCommands(groupCalls[0].partition)...)...)
		notReplicated := checkReplicated(results[len(groupCalls):])
		for k, i := range g.indexes {
			m, err := results[k].ToMessage()
			if err != nil && !isScriptMissing(err) {
				s.routes.forgetPartition(calls[i].partition)
			}
			replies[i] = scriptReply{m, cmp.Or(err, notReplicated)}
		}
	}
	for _, i := range g.indexes {
		if g.node == nil || isScriptMissing(replies[i].err) {
			m, err := s.tryScriptDurably(ctx, calls[i].partition, sc, calls[i].args...)
			replies[i] = scriptReply{m, err}
		}
	}
}
