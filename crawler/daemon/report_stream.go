package daemon

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// forEachHostReport calls done with every host of the crawl, and keeps none of them. A host
// with one origin is complete when the store names that origin. The origins of other
// hosts are read again after that, one host after the other. With judge, parked URLs
// are judged; done must not ask the store. Besides what done keeps, forEachHostReport holds
// nine bytes a host, and the names of the origins that it reads again.
func (q *inspector) forEachHostReport(ctx context.Context, withParked bool, yield func(*hostReport)) error {
	index, err := q.newHostReportStateIndex(ctx)
	if err != nil {
		return err
	}
	var incomplete []decorum.Origin
	err = q.frontierStore.Origins(ctx, func(o storage.OriginInfo) bool {
		name := o.Origin.Host()
		switch index.testAndMarkReported(name) {
		case hostReported: // this origin is new since the index was made
			return true
		case hostOfSeveralOrigins:
			incomplete = append(incomplete, o.Origin)
			return true
		}
		if withParked && o.Parked > 0 {
			incomplete = append(incomplete, o.Origin)
			return true
		}
		h := q.newHostReport(name, &o.HostState)
		h.addOrigin(&o, q.inspectionTime)
		q.completeHostReport(&h)
		yield(&h)
		return true
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(incomplete, func(a, b decorum.Origin) int { return strings.Compare(a.Host(), b.Host()) })
	for len(incomplete) > 0 {
		n := 1
		for n < len(incomplete) && incomplete[n].Host() == incomplete[0].Host() {
			n++
		}
		if err := q.readAndYieldHost(ctx, incomplete[:n], withParked, yield); err != nil {
			return err
		}
		incomplete = incomplete[n:]
	}
	return nil
}

// readAndYieldHost reads a host by its origins, and calls done with it.
func (q *inspector) readAndYieldHost(ctx context.Context, origins []decorum.Origin, withParked bool, yield func(*hostReport)) error {
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
	yield(h)
	return nil
}

// readHost reads a host by its origins. It returns nil if the store knows none.
func (q *inspector) readHost(ctx context.Context, origins []decorum.Origin) (h *hostReport, err error) {
	for _, name := range origins {
		o, isKnown, err := q.frontierStore.Origin(ctx, name)
		if err != nil {
			return nil, err
		}
		if !isKnown {
			continue
		}
		if h == nil {
			created := q.newHostReport(name.Host(), &o.HostState)
			h = &created
		}
		h.addOrigin(&o, q.inspectionTime)
	}
	if h != nil {
		q.completeHostReport(h)
	}
	return h, nil
}

// completeHostReport works out what follows from all origins of a host.
func (q *inspector) completeHostReport(h *hostReport) {
	recalculateCoverage(&h.HostTotals)
	h.markSuspendedIfCrawlDelayTooLong(q.project.Politeness.MaxCrawlDelay)
}

// A hostReportStateIndex is the hosts that a store knew at one moment, as sorted hashes of their
// names. Two hosts with the same hash count as one of several origins, which costs
// memory but changes no result.
type hostReportStateIndex struct {
	hashSeed maphash.Seed
	hashes   []uint64
	states   []hostReportState // of the hosts in hashes
}

// A hostReportState says what forEachHostReport does with an origin of a host.
type hostReportState byte

const (
	hostOfOneOrigin hostReportState = iota
	hostOfSeveralOrigins
	hostReported
)

// newHostReportStateIndex lists the names of all origins.
func (q *inspector) newHostReportStateIndex(ctx context.Context) (*hostReportStateIndex, error) {
	index := hostReportStateIndex{hashSeed: maphash.MakeSeed()}
	err := storage.OriginNames(ctx, q.frontierStore, func(o decorum.Origin) bool {
		index.hashes = append(index.hashes, maphash.String(index.hashSeed, o.Host()))
		return true
	})
	slices.Sort(index.hashes)
	unique := index.hashes[:0]
	for i, hash := range index.hashes {
		if i > 0 && hash == unique[len(unique)-1] {
			index.states[len(unique)-1] = hostOfSeveralOrigins
			continue
		}
		unique, index.states = append(unique, hash), append(index.states, hostOfOneOrigin)
	}
	index.hashes = unique
	return &index, err
}

// testAndMarkReported returns the mark of a host, and marks one of a single origin as done. A host
// that is new since the index was made may have any number of origins.
func (x *hostReportStateIndex) testAndMarkReported(host string) hostReportState {
	at, found := slices.BinarySearch(x.hashes, maphash.String(x.hashSeed, host))
	if !found {
		return hostOfSeveralOrigins
	}
	mark := x.states[at]
	if mark == hostOfOneOrigin {
		x.states[at] = hostReported
	}
	return mark
}
