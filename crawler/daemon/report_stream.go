package daemon

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// eachHost calls done with every host of the crawl, and keeps none of them. A host
// with one origin is complete when the store names that origin. The origins of other
// hosts are read again after that, one host after the other. With judge, parked URLs
// are judged; done must not ask the store. Besides what done keeps, eachHost holds
// nine bytes a host, and the names of the origins that it reads again.
func (q *inquiry) eachHost(ctx context.Context, withParked bool, done func(*surveyed)) error {
	index, err := q.indexHosts(ctx)
	if err != nil {
		return err
	}
	var again []decorum.Origin
	err = q.store.Origins(ctx, func(o storage.OriginInfo) bool {
		name := o.Origin.Host()
		switch index.visit(name) {
		case hostDone: // this origin is new since the index was made
			return true
		case hostOfSeveralOrigins:
			again = append(again, o.Origin)
			return true
		}
		if withParked && o.Parked > 0 {
			again = append(again, o.Origin)
			return true
		}
		h := q.newHost(name, &o.Host)
		h.addOrigin(&o, q.now)
		q.finish(&h)
		done(&h)
		return true
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(again, func(a, b decorum.Origin) int { return strings.Compare(a.Host(), b.Host()) })
	for len(again) > 0 {
		n := 1
		for n < len(again) && again[n].Host() == again[0].Host() {
			n++
		}
		if err := q.revisitHost(ctx, again[:n], withParked, done); err != nil {
			return err
		}
		again = again[n:]
	}
	return nil
}

// revisitHost reads a host by its origins, and calls done with it.
func (q *inquiry) revisitHost(ctx context.Context, origins []decorum.Origin, withParked bool, done func(*surveyed)) error {
	h, err := q.readHost(ctx, origins)
	if err != nil || h == nil {
		return err
	}
	if withParked && h.ParkedURLs > 0 {
		for _, o := range origins {
			if err := q.classifyParked(ctx, o, h); err != nil {
				return err
			}
		}
	}
	done(h)
	return nil
}

// readHost reads a host by its origins. It returns nil if the store knows none.
func (q *inquiry) readHost(ctx context.Context, origins []decorum.Origin) (h *surveyed, err error) {
	for _, name := range origins {
		o, met, err := q.store.Origin(ctx, name)
		if err != nil {
			return nil, err
		}
		if !met {
			continue
		}
		if h == nil {
			begun := q.newHost(name.Host(), &o.Host)
			h = &begun
		}
		h.addOrigin(&o, q.now)
	}
	if h != nil {
		q.finish(h)
	}
	return h, nil
}

// finish works out what follows from all origins of a host.
func (q *inquiry) finish(h *surveyed) {
	cover(&h.HostTotals)
	h.mind(q.project.Politeness.MaxCrawlDelay)
}

// A hostIndex is the hosts that a store knew at one moment, as sorted hashes of their
// names. Two hosts with the same hash count as one of several origins, which costs
// memory but changes no result.
type hostIndex struct {
	seed   maphash.Seed
	hashes []uint64
	marks  []hostMark // of the hosts in hashes
}

// A hostMark says what eachHost does with an origin of a host.
type hostMark byte

const (
	hostOfOneOrigin hostMark = iota
	hostOfSeveralOrigins
	hostDone
)

// indexHosts lists the names of all origins.
func (q *inquiry) indexHosts(ctx context.Context) (*hostIndex, error) {
	index := hostIndex{seed: maphash.MakeSeed()}
	err := storage.OriginNames(ctx, q.store, func(o decorum.Origin) bool {
		index.hashes = append(index.hashes, maphash.String(index.seed, o.Host()))
		return true
	})
	slices.Sort(index.hashes)
	unique := index.hashes[:0]
	for i, hash := range index.hashes {
		if i > 0 && hash == unique[len(unique)-1] {
			index.marks[len(unique)-1] = hostOfSeveralOrigins
			continue
		}
		unique, index.marks = append(unique, hash), append(index.marks, hostOfOneOrigin)
	}
	index.hashes = unique
	return &index, err
}

// visit returns the mark of a host, and marks one of a single origin as done. A host
// that is new since the index was made may have any number of origins.
func (x *hostIndex) visit(host string) hostMark {
	at, found := slices.BinarySearch(x.hashes, maphash.String(x.seed, host))
	if !found {
		return hostOfSeveralOrigins
	}
	mark := x.marks[at]
	if mark == hostOfOneOrigin {
		x.marks[at] = hostDone
	}
	return mark
}
