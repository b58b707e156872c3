package inspect

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// ForEachHostReport calls done with every host of the crawl, and keeps none of them. A host
// with one origin is complete when the store names that origin. The origins of other
// hosts are read again after that, one host after the other. With judge, parked URLs
// are judged; done must not ask the store. Besides what done keeps, ForEachHostReport holds
// nine bytes an origin, and the names of the origins that it reads again.
func (q *Inspector) ForEachHostReport(ctx context.Context, withParked bool, yield func(*HostReport)) error {
	marks, err := q.newReportedHostTracker(ctx)
	if err != nil {
		return err
	}
	var incomplete []decorum.Origin
	err = q.FrontierStore.Origins(ctx, func(o storage.OriginInfo) bool {
		name := o.Origin.Host()
		switch mark := marks.getAndMarkReported(name); {
		case mark == hostReported: // this origin is new since the marks were made
		case mark == hostOfSeveralOrigins, withParked && o.ParkedURLs > 0:
			incomplete = append(incomplete, o.Origin)
		default:
			h := q.newHostReport(name, &o.HostState)
			h.addOrigin(&o, q.AsOf)
			q.completeHostReport(h)
			yield(h)
		}
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
		h, err := q.ReadHost(ctx, incomplete[:n], withParked)
		if err != nil {
			return err
		}
		if h != nil {
			yield(h)
		}
		incomplete = incomplete[n:]
	}
	return nil
}

// ReadHost reads a host by its origins. It returns nil if the store knows none. With
// withParked, parked URLs are judged.
func (q *Inspector) ReadHost(
	ctx context.Context, origins []decorum.Origin, withParked bool,
) (h *HostReport, err error) {
	for _, name := range origins {
		o, isKnown, err := q.FrontierStore.Origin(ctx, name)
		if err != nil {
			return nil, err
		}
		if !isKnown {
			continue
		}
		if h == nil {
			h = q.newHostReport(name.Host(), &o.HostState)
		}
		h.addOrigin(&o, q.AsOf)
	}
	if h == nil {
		return nil, nil
	}
	if withParked && h.ParkedURLs > 0 {
		for _, o := range origins {
			if err := q.countParkedURLsByReason(ctx, o, h); err != nil {
				return nil, err
			}
		}
		h.ParkedByRule = h.parkedURLTally.Sorted()
	}
	q.completeHostReport(h)
	return h, nil
}

// completeHostReport works out what follows from all origins of a host.
func (q *Inspector) completeHostReport(h *HostReport) {
	recalculateCoverage(&h.HostTotals)
	h.markSuspendedIfCrawlDelayTooLong(q.Project.Politeness.MaxCrawlDelay)
}

// A reportedHostTracker is the hosts that a store knew at one moment, as sorted hashes of their
// names, one for each origin. Two hosts with the same hash count as one of several origins,
// which costs memory but changes no result.
type reportedHostTracker struct {
	hashSeed       maphash.Seed
	hostNameHashes []uint64
	isReported     []bool // of the hosts in hostNameHashes
}

// An originReportAction says what ForEachHostReport does with an origin of a host.
type originReportAction byte

const (
	hostOfOneOrigin originReportAction = iota
	hostOfSeveralOrigins
	hostReported
)

// newReportedHostTracker lists the names of all origins.
func (q *Inspector) newReportedHostTracker(ctx context.Context) (*reportedHostTracker, error) {
	marks := reportedHostTracker{hashSeed: maphash.MakeSeed()}
	err := q.FrontierStore.OriginNames(ctx, func(o decorum.Origin) bool {
		marks.hostNameHashes = append(marks.hostNameHashes, maphash.String(marks.hashSeed, o.Host()))
		return true
	})
	slices.Sort(marks.hostNameHashes)
	marks.isReported = make([]bool, len(marks.hostNameHashes))
	return &marks, err
}

// getAndMarkReported returns the mark of a host, and marks one of a single origin as done. A host
// that is new since the marks were made may have any number of origins.
func (m *reportedHostTracker) getAndMarkReported(host string) originReportAction {
	hash := maphash.String(m.hashSeed, host)
	at, found := slices.BinarySearch(m.hostNameHashes, hash) // the first of equal ones
	switch {
	case !found, at+1 < len(m.hostNameHashes) && m.hostNameHashes[at+1] == hash:
		return hostOfSeveralOrigins
	case m.isReported[at]:
		return hostReported
	}
	m.isReported[at] = true
	return hostOfOneOrigin
}
