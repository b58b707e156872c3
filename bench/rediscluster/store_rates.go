package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/program"
	"github.com/decorum-crawler/decorum/bench/internal/table"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

const (
	callersPerStore = 16 // callers that share a store
	leasesPerCall   = 64 // maximum leases of a call
)

// benchmarkStoreRates writes the table of rates, with rows for each layout and number of callers.
func benchmarkStoreRates(p benchmarkOptions, layouts []string, t *table.Table) error {
	callers, err := program.ParseCounts(strings.Split(p.CallerCounts, ","))
	if err != nil {
		return err
	}
	t.Row("cluster", "callers", "verb", "URLs/s", "us here", "us servers")
	for _, layout := range layouts {
		err := withCluster(p, layout, func(c *redistest.Cluster) error {
			for _, n := range callers {
				r := &storeBenchmark{benchmarkOptions: p, cluster: c, clusterLayout: layout, callers: n, table: t}
				if err := r.measureRates(); err != nil {
					return fmt.Errorf("cluster %s, %d callers: %w", layout, n, err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// A storeBenchmark writes the rows of one cluster and number of callers.
type storeBenchmark struct {
	benchmarkOptions
	cluster       *redistest.Cluster
	clusterLayout string
	callers       int
	table         *table.Table
	stores        []*redis.Store
}

// A measurement is the time that an operation on some URLs took.
type measurement struct {
	urls    int
	elapsed time.Duration
	clientServerCPUTime
}

// measureRates measures the discovery in each order, then leases and acks, and writes their rows.
func (r *storeBenchmark) measureRates() error {
	// Open the stores, all with the same keys.
	prefix := newKeyPrefix()
	for range (r.callers + callersPerStore - 1) / callersPerStore {
		_, replicas, err := parseLayout(r.clusterLayout)
		if err != nil {
			return err
		}
		s, err := openRedis(r.cluster, prefix, replicas)
		if err != nil {
			return err
		}
		defer s.Close()
		r.stores = append(r.stores, s)
	}
	pages := (r.URLs + linksPerPage - 1) / linksPerPage
	for _, o := range orders {
		c, err := r.measureOperation(func() (int, error) { return r.addPageLinks(o, 0, pages) })
		if err != nil {
			return err
		}
		r.writeRateRow("discover "+o.name, c)
	}
	return r.measureLeaseAndAckRates(len(orders) * pages * linksPerPage)
}

// writeRateRow writes the row of a verb.
func (r *storeBenchmark) writeRateRow(verb string, c measurement) {
	each := func(d time.Duration) string { return fmt.Sprintf("%.0f", float64(d.Microseconds())/float64(c.urls)) }
	r.table.Row(r.clusterLayout, r.callers, verb, fmt.Sprintf("%.0f", float64(c.urls)/c.elapsed.Seconds()),
		each(c.clients), each(c.servers))
}

// measureOperation returns the time that do took for the number of URLs that it returns.
func (r *storeBenchmark) measureOperation(do func() (int, error)) (c measurement, err error) {
	before, err := clientAndServerCPUTime(r.cluster)
	if err != nil {
		return c, err
	}
	begin := time.Now()
	if c.urls, err = do(); err != nil {
		return c, err
	}
	c.elapsed = time.Since(begin)
	after, err := clientAndServerCPUTime(r.cluster)
	c.clientServerCPUTime = after.minus(before)
	return c, err
}

// runCallers calls do once for each i below n, from the given number of goroutines, each with its
// store.
func (r *storeBenchmark) runCallers(callers, n int, do func(s *redis.Store, i int) error) error {
	var next atomic.Int64
	return program.RunWorkers(callers, func(k int) (err error) {
		for i := int(next.Add(1)) - 1; i < n && err == nil; i = int(next.Add(1)) - 1 {
			err = do(r.stores[k%len(r.stores)], i)
		}
		return err
	})
}

// addPageLinks adds the links of pages from to to-1, which are all new. The time includes the
// generation of links. It ignores how many the store counts as new, because a call that the client
// repeats reports its own URLs as known; measureLeaseAndAckRates checks that all URLs can be
// leased.
func (r *storeBenchmark) addPageLinks(o linkDistribution, from, to int) (urls int, err error) {
	return (to - from) * linksPerPage, r.runCallers(r.callers, to-from, func(s *redis.Store, i int) error {
		_, err := s.Add(context.Background(), o.pageLinks(from+i, r.Hosts), 0)
		return err
	})
}

// measureLeaseAndAckRates leases and acks all URLs, in rounds of all due hosts, and writes their
// rows. A store learns of hosts that other stores made due only when it refreshes, so some rounds
// find no URL. The benchmark fails if a minute passes without a lease.
func (r *storeBenchmark) measureLeaseAndAckRates(urls int) error {
	var leasing, acking measurement
	for lastLease := time.Now(); acking.urls < urls; {
		// Lease the URLs of all due hosts.
		var leases []storage.Lease
		c, err := r.measureOperation(func() (n int, err error) {
			leases, err = r.leaseAllDue()
			return len(leases), err
		})
		if err != nil {
			return err
		}
		if len(leases) == 0 && time.Since(lastLease) > time.Minute {
			return fmt.Errorf("%d of %d URLs were visited, and no other URL became due within a minute", acking.urls,
				urls)
		}
		if len(leases) == 0 {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		lastLease = time.Now()
		leasing.addMeasurement(c)
		if c, err = r.measureOperation(func() (int, error) { return len(leases), r.ackAll(leases) }); err != nil {
			return err
		}
		acking.addMeasurement(c)
	}
	r.writeRateRow("lease", leasing)
	r.writeRateRow("ack", acking)
	return nil
}

// addMeasurement adds d to c.
func (c *measurement) addMeasurement(d measurement) {
	c.urls += d.urls
	c.elapsed += d.elapsed
	c.clientServerCPUTime = c.plus(d.clientServerCPUTime)
}

// leaseAllDue takes leases of all due hosts, with one caller for each store.
func (r *storeBenchmark) leaseAllDue() (leases []storage.Lease, err error) {
	var mu sync.Mutex // guards leases
	err = r.runCallers(len(r.stores), len(r.stores), func(s *redis.Store, _ int) error {
		for {
			more, _, err := s.Lease(context.Background(), time.Now(), time.Hour, leasesPerCall)
			mu.Lock()
			leases = append(leases, more...)
			mu.Unlock()
			if err != nil || len(more) == 0 {
				return err
			}
		}
	})
	return leases, err
}

// ackAll acks leases one by one, on any of the stores: a lease's token is valid on all of them.
func (r *storeBenchmark) ackAll(leases []storage.Lease) error {
	return r.runCallers(r.callers, len(leases), func(s *redis.Store, i int) error {
		return s.Ack(context.Background(),
			[]storage.Ack{{Lease: leases[i], HostState: &storage.HostState{LostVisitDelay: time.Second}}})
	})
}
