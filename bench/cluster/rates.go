package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/program"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

const (
	sharing = 16 // callers of a store
	inHand  = 64 // leases of a call
)

// rates makes the table of rates.
func rates(p plan, layouts []string, out io.Writer) error {
	callers, err := program.Numbers(strings.Split(p.Callers, ","))
	if err != nil {
		return err
	}
	row(out, "cluster", "callers", "verb", "URLs/s", "us here", "us servers")
	for _, layout := range layouts {
		err := withCluster(p, layout, func(c *redistest.Cluster) error {
			for _, n := range callers {
				r := &rater{plan: p, cluster: c, layout: layout, callers: n, out: out}
				if err := r.run(); err != nil {
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

// A rater makes the rows of one cluster and number of callers.
type rater struct {
	plan
	cluster *redistest.Cluster
	layout  string
	callers int
	out     io.Writer
	stores  []*redis.Store
}

// A cost is what some URLs took.
type cost struct {
	urls int
	time time.Duration
	processor
}

func (r *rater) run() error {
	prefix := newPrefix()
	for range (r.callers + sharing - 1) / sharing {
		_, replicas, err := parseLayout(r.layout)
		if err != nil {
			return err
		}
		s, err := open(r.cluster, prefix, replicas)
		if err != nil {
			return err
		}
		defer s.Close()
		r.stores = append(r.stores, s)
	}
	pages := (r.URLs + links - 1) / links
	for _, o := range orders {
		c, err := r.measure(func() (int, error) { return r.discover(o, 0, pages) })
		if err != nil {
			return err
		}
		r.tell("discover "+o.name, c)
	}
	return r.visit(len(orders) * pages * links)
}

// tell writes a row.
func (r *rater) tell(verb string, c cost) {
	each := func(d time.Duration) string { return fmt.Sprintf("%.0f", float64(d.Microseconds())/float64(c.urls)) }
	row(r.out, r.layout, r.callers, verb, fmt.Sprintf("%.0f", float64(c.urls)/c.time.Seconds()), each(c.here), each(c.servers))
}

// measure returns what do took, for the URLs that it returns.
func (r *rater) measure(do func() (int, error)) (c cost, err error) {
	before, err := spent(r.cluster)
	if err != nil {
		return c, err
	}
	begin := time.Now()
	if c.urls, err = do(); err != nil {
		return c, err
	}
	c.time = time.Since(begin)
	after, err := spent(r.cluster)
	c.processor = after.minus(before)
	return c, err
}

// together has so many callers work on parts of n, each of which is done once.
func (r *rater) together(callers, n int, do func(s *redis.Store, i int) error) error {
	errs := make([]error, callers)
	var next atomic.Int64
	var group sync.WaitGroup
	for k := range errs {
		group.Go(func() {
			for errs[k] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				errs[k] = do(r.stores[k%len(r.stores)], i)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// discover adds the links of some pages, all of which are new. To make them up is part
// of the time. That all are there is checked by who visits them: a call that had to be
// made again says of what it added before that it is known.
func (r *rater) discover(o order, from, to int) (urls int, err error) {
	return (to - from) * links, r.together(r.callers, to-from, func(s *redis.Store, i int) error {
		_, err := s.Add(context.Background(), o.page(from+i, r.Hosts), 0)
		return err
	})
}

// visit leases and acks all URLs, as many at a time as there are hosts due. A store
// learns of what others made due when it looks the next time.
func (r *rater) visit(urls int) error {
	var leasing, acking cost
	for lately := time.Now(); acking.urls < urls; {
		var leases []storage.Lease
		c, err := r.measure(func() (n int, err error) {
			leases, err = r.lease()
			return len(leases), err
		})
		if err != nil {
			return err
		}
		if len(leases) == 0 && time.Since(lately) > time.Minute {
			return fmt.Errorf("%d of %d URLs were visited, and no other is due", acking.urls, urls)
		}
		if len(leases) == 0 {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		lately = time.Now()
		leasing.add(c)
		if c, err = r.measure(func() (int, error) { return len(leases), r.ack(leases) }); err != nil {
			return err
		}
		acking.add(c)
	}
	r.tell("lease", leasing)
	r.tell("ack", acking)
	return nil
}

func (c *cost) add(d cost) {
	c.urls += d.urls
	c.time += d.time
	c.processor = c.plus(d.processor)
}

// lease takes leases of all hosts, one caller for each store.
func (r *rater) lease() (leases []storage.Lease, err error) {
	var mu sync.Mutex
	err = r.together(len(r.stores), len(r.stores), func(s *redis.Store, _ int) error {
		for {
			more, _, err := s.Lease(context.Background(), time.Now(), time.Hour, inHand)
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

// ack ends leases one by one, by the store that has them or by another: a token is
// known to all.
func (r *rater) ack(leases []storage.Lease) error {
	return r.together(r.callers, len(leases), func(s *redis.Store, i int) error {
		return s.Ack(context.Background(), []storage.Ack{{Lease: leases[i], Host: &storage.Host{Gap: time.Second}}})
	})
}
