package main

import (
	"fmt"
	"io"

	"github.com/decorum-crawler/decorum/bench/internal/program"
	"github.com/decorum-crawler/decorum/storage/redis"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// memory makes the table of memory.
func memory(p plan, list []string, out io.Writer) error {
	hosts, err := program.Numbers(list)
	if err != nil {
		return err
	}
	row(out, "hosts", "URLs", "B/URL queued", "B/URL visited", "B/host", "B/URL of a host")
	for _, n := range hosts {
		err := withCluster(p, "1+0", func(c *redistest.Cluster) error {
			p := p
			p.Hosts = n
			r := &rater{plan: p, cluster: c, layout: "1+0", callers: sharing, out: io.Discard}
			return r.remember(out)
		})
		if err != nil {
			return fmt.Errorf("memory of %d hosts: %w", n, err)
		}
	}
	return nil
}

// remember writes a row of memory. Hosts come with their first URL.
func (r *rater) remember(out io.Writer) error {
	s, err := open(r.cluster, newPrefix(), 0)
	if err != nil {
		return err
	}
	defer s.Close()
	r.stores = []*redis.Store{s}
	scattered := orders[0]
	server := r.cluster.Nodes()[0]
	var used [4]int // empty; hosts with their first URLs; all queued; all visited
	first := (r.Hosts + links - 1) / links
	all := max(first+1, (r.URLs+links-1)/links)
	for i, step := range []func() error{
		func() error { return nil },
		func() error { _, err := r.discover(scattered, 0, first); return err },
		func() error { _, err := r.discover(scattered, first, all); return err },
		func() error { return r.visit(all * links) },
	} {
		if err := step(); err != nil {
			return err
		}
		if used[i], err = usedMemory(server); err != nil {
			return err
		}
	}
	each := func(from, to, n int) string { return fmt.Sprintf("%.0f", float64(used[to]-used[from])/float64(n)) }
	ofHosts, urls := first*links, all*links
	row(out, r.Hosts, urls, each(0, 2, urls), each(0, 3, urls), each(0, 1, ofHosts), each(1, 2, urls-ofHosts))
	return nil
}
