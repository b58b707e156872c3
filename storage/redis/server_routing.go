package redis

import (
	"cmp"
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// routes say which server has which partition, so that what goes to one server can go
// by one connection. A partition of which that is not known is called by itself.
type routes struct {
	mu    sync.Mutex
	to    map[*partition]string // the address, as the client names it
	asked time.Time
}

// askAgain is how often the cluster is asked at most where partitions are.
const askAgain = time.Second

// route returns the addresses of the servers of some calls, empty where it is not known.
func (s *Store) route(ctx context.Context, calls []call) []string {
	s.routes.mu.Lock()
	defer s.routes.mu.Unlock()
	for _, c := range calls {
		if s.routes.to[c.partition] == "" && time.Since(s.routes.asked) >= askAgain {
			s.routes.asked = time.Now()
			s.routes.to = s.findServers(ctx)
		}
	}
	addresses := make([]string, len(calls))
	for i, c := range calls {
		addresses[i] = s.routes.to[c.partition]
	}
	return addresses
}

// forget notes that a partition may be with another server now.
func (r *routes) forget(p *partition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.to, p)
}

// findServers asks the cluster which server has which partition. What it does not say,
// or says in another way than expected, is not known.
func (s *Store) findServers(ctx context.Context) map[*partition]string {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	to := make(map[*partition]string)
	shares, err := s.client.Do(ctx, s.client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return to
	}
	for _, m := range shares {
		share := fieldsOf(m)
		first, last := share.int(), share.int()
		master, _ := share.next()
		server := fieldsOf(master)
		address := net.JoinHostPort(server.string(), strconv.FormatInt(server.int(), 10))
		if share.err != nil || server.err != nil {
			continue
		}
		for _, p := range s.partitions {
			if first <= p.slot && p.slot <= last {
				to[p] = address
			}
		}
	}
	return to
}

// A group is calls, by their index, that go to one server; nil if it is not known.
type group struct {
	node  rueidis.Client
	items []int
}

// groups sorts calls by their servers. One whose server is not known is a group.
func (s *Store) groups(ctx context.Context, calls []call) []*group {
	nodes := s.client.Nodes()
	var all []*group
	open := make(map[rueidis.Client]*group)
	for i, address := range s.route(ctx, calls) {
		g := open[nodes[address]]
		if g == nil {
			g = &group{node: nodes[address]}
			all = append(all, g)
		}
		if g.node != nil {
			open[g.node] = g
		}
		g.items = append(g.items, i)
	}
	return all
}

// trySafelyAll is tryAll for what must not be lost: see trySafely. Calls to one server
// go by one connection, and wait together until a replica has confirmed all of them.
func (s *Store) trySafelyAll(ctx context.Context, sc *script, calls []call) []answer {
	if s.opts.Durability == None {
		return s.tryAll(ctx, sc, calls)
	}
	answers := make([]answer, len(calls))
	for i := range answers {
		answers[i].err = errUnsafe // if it is not made any more, because ctx is done
	}
	inParallel(ctx, s.groups(ctx, calls), func(g *group) error {
		s.tryGroup(ctx, sc, calls, g, answers)
		return nil // each call has an error of its own
	})
	return answers
}

// tryGroup makes the calls of a group. The client takes a connection of its own for what
// waits, and sends all of it by that.
func (s *Store) tryGroup(ctx context.Context, sc *script, calls []call, g *group, answers []answer) {
	limited, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	if g.node != nil {
		ours := make([]call, len(g.items))
		for k, i := range g.items {
			ours[k] = calls[i]
		}
		results := g.node.DoMulti(limited, append(s.commands(sc, ours), s.wait(ours[0].partition)...)...)
		unsafe := confirmed(results[len(ours):])
		for k, i := range g.items {
			m, err := results[k].ToMessage()
			if err != nil && !isMissing(err) {
				s.routes.forget(calls[i].partition)
			}
			answers[i] = answer{m, cmp.Or(err, unsafe)}
		}
	}
	for _, i := range g.items {
		if g.node == nil || isMissing(answers[i].err) {
			m, err := s.trySafely(ctx, calls[i].partition, sc, calls[i].args...)
			answers[i] = answer{m, err}
		}
	}
}
