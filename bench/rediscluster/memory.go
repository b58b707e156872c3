package main

import (
	"fmt"
	"io"

	"github.com/decorum-crawler/decorum/bench/internal/program"
	"github.com/decorum-crawler/decorum/bench/internal/table"
	"github.com/decorum-crawler/decorum/storage/redis"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// benchmarkMemory writes the table of memory, with a row for each number of hosts in list.
func benchmarkMemory(p benchmarkOptions, list []string, t *table.Table) error {
	hosts, err := program.ParseCounts(list)
	if err != nil {
		return err
	}
	t.Row("hosts", "URLs", "B/URL queued", "B/URL visited", "B/host", "B/URL of a host")
	for _, n := range hosts {
		err := withCluster(p, "1+0", func(c *redistest.Cluster) error {
			p := p
			p.Hosts = n
			r := &storeBenchmark{benchmarkOptions: p, cluster: c, clusterLayout: "1+0", callers: callersPerStore,
				table: table.New(io.Discard)}
			return r.measureMemoryRow(t)
		})
		if err != nil {
			return fmt.Errorf("memory of %d hosts: %w", n, err)
		}
	}
	return nil
}

// measureMemoryRow writes the row of r.Hosts. It measures the server's memory after each of four
// steps; the differences are the memory of hosts with their first URL, of queued URLs and of
// visited URLs.
func (r *storeBenchmark) measureMemoryRow(t *table.Table) error {
	s, err := openRedis(r.cluster, newKeyPrefix(), 0)
	if err != nil {
		return err
	}
	defer s.Close()
	r.stores = []*redis.Store{s}
	// Measure after each step.
	scattered := orders[0]
	server := r.cluster.Nodes()[0]
	var used [4]int // empty; each host with its first URL; all URLs queued; all visited
	first := (r.Hosts + linksPerPage - 1) / linksPerPage
	all := max(first+1, (r.URLs+linksPerPage-1)/linksPerPage)
	for i, step := range []func() error{
		func() error { return nil },
		func() error { _, err := r.addPageLinks(scattered, 0, first); return err },
		func() error { _, err := r.addPageLinks(scattered, first, all); return err },
		func() error { return r.measureLeaseAndAckRates(all * linksPerPage) },
	} {
		if err := step(); err != nil {
			return err
		}
		if used[i], err = usedMemory(server); err != nil {
			return err
		}
	}
	each := func(from, to, n int) string { return fmt.Sprintf("%.0f", float64(used[to]-used[from])/float64(n)) }
	ofHosts, urls := first*linksPerPage, all*linksPerPage
	t.Row(r.Hosts, urls, each(0, 2, urls), each(0, 3, urls), each(0, 1, ofHosts), each(1, 2, urls-ofHosts))
	return nil
}
