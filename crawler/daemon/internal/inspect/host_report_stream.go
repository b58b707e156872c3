package inspect

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// ForEachHostReport calls yield with a report on every host of the crawl, and keeps no report. With
// withParked, the reports say why URLs are parked. yield must not call the store. ForEachHostReport
// holds nine bytes per origin, and the names of the origins that it reads twice.
func (q *Inspector) ForEachHostReport(ctx context.Context, withParked bool, yield func(*HostReport)) error {
	// One pass over the origins completes the hosts with one origin.
	marks, err := q.newReportedHostTracker(ctx)
	if err != nil {
		return err
	}
	var incomplete []decorum.Origin
	err = q.FrontierStore.Origins(ctx, func(o storage.OriginInfo) bool {
		name := o.Origin.Host()
		switch mark := marks.getAndMarkReported(name); {
		case mark == hostReported: // this origin is newer than the marks: leave it out
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
	// Read the other hosts one at a time, each with all of its origins.
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

// ReadHost reads the report on a host from the store. origins are all of the host's origins. It
// returns nil if the store has none of them. With withParked, the report says why URLs are parked.
func (q *Inspector) ReadHost(
	ctx context.Context, origins []decorum.Origin, withParked bool,
) (h *HostReport, err error) {
	// Add up the origins that the store still has, without those that only hold notes about the host.
	var noteHolders []storage.OriginInfo
	add := func(o *storage.OriginInfo) {
		if h == nil {
			h = q.newHostReport(o.Origin.Host(), &o.HostState)
		}
		h.addOrigin(o, q.AsOf)
	}
	for _, name := range origins {
		o, isKnown, err := q.FrontierStore.Origin(ctx, name)
		if err != nil {
			return nil, err
		}
		if !isKnown {
			continue
		}
		onlyNotes, err := q.holdsOnlyNotes(ctx, &o)
		switch {
		case err != nil:
			return nil, err
		case onlyNotes:
			noteHolders = append(noteHolders, o)
		default:
			add(&o)
		}
	}
	// A host is reported even if it has nothing but notes.
	for i := range noteHolders {
		if h == nil {
			add(&noteHolders[i])
		}
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

// holdsOnlyNotes reports whether the crawl never had a URL of origin o and never fetched its robots.txt.
// The store has such an origin if the site is on another port: notes about a host are kept at its http
// origin.
func (q *Inspector) holdsOnlyNotes(ctx context.Context, o *storage.OriginInfo) (bool, error) {
	if o.SeenURLs+o.QueuedURLs+o.LeasedURLs+o.AwaitingRevisit+o.ParkedURLs > 0 {
		return false, nil
	}
	status, err := q.Gate.LastFetchSummary(ctx, o.Origin)
	return err == nil && status.Outcome == gate.OutcomeUnknown, err
}

// SuspendedHosts returns reports on up to limit suspended hosts, with HoldReason where the store has a
// reason. It stops reading origins when it has found limit hosts. Of a host with several origins, the report
// covers the first suspended one.
func (q *Inspector) SuspendedHosts(ctx context.Context, limit int) (hosts []*HostReport, err error) {
	err = q.FrontierStore.Origins(ctx, func(o storage.OriginInfo) bool {
		name := o.Origin.Host()
		isListed := func(h *HostReport) bool { return h.Host.Host == name }
		if hostStateFromOrigin(&o, q.AsOf) == HostSuspended && !slices.ContainsFunc(hosts, isListed) {
			h := q.newHostReport(name, &o.HostState)
			h.addOrigin(&o, q.AsOf)
			q.completeHostReport(h)
			hosts = append(hosts, h)
		}
		return len(hosts) < limit
	})
	for _, h := range hosts {
		if err == nil {
			err = q.SetHostHoldReason(ctx, h)
		}
	}
	return hosts, err
}

// completeHostReport sets the fields of h that depend on all origins of the host.
func (q *Inspector) completeHostReport(h *HostReport) {
	recalculateCoverage(&h.HostTotals)
	h.markSuspendedIfCrawlDelayTooLong(q.Project.Politeness.MaxCrawlDelay)
}

// A reportedHostTracker records which hosts have one origin, and which of these are reported. Two
// hosts with the same hash count as one host with several origins, which costs memory but changes
// no result.
type reportedHostTracker struct {
	hashSeed       maphash.Seed
	hostNameHashes []uint64 // sorted hashes of host names, one for each origin
	isReported     []bool   // parallel to hostNameHashes
}

// An originReportAction is what ForEachHostReport does with an origin of a host.
type originReportAction byte

const (
	hostOfOneOrigin      originReportAction = iota // report the host
	hostOfSeveralOrigins                           // read the host after the pass
	hostReported                                   // skip the origin
)

// newReportedHostTracker returns a tracker of the origins that the store has now.
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

// getAndMarkReported returns what to do with an origin of host, and marks a host with one origin as
// reported. A host that is newer than the tracker may have any number of origins, so it counts as
// one with several.
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
