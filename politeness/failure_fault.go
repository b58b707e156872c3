package politeness

import (
	"net/netip"
	"time"
)

// Evidence says how likely it is that a visit failed because of this machine, and
// not because of its host.
type Evidence uint8

// The kinds of evidence.
const (
	// Possible is a failure that looks like the host's, such as a time-out or a
	// connection that is refused. It is this machine's if many hosts fail at once.
	Possible Evidence = iota
	// Probable is a failure that looks like this machine's, such as a network
	// without a route. It is the host's if other hosts answer meanwhile.
	Probable
	// Certain is a failure without any part of the host, such as a lack of file
	// descriptors.
	Certain
)

// A Failure is a visit that got no answer.
type Failure struct {
	Host     string
	Addr     netip.Addr // the address of the connection; zero: unknown
	Start    time.Time  // of the visit
	Evidence Evidence
	Why      string // what this machine lacks, if it is to blame: "no route to the network"
}

// A Verdict says whom a Failure is charged to.
type Verdict uint8

// The verdicts.
const (
	Undecided    Verdict = iota
	HostFault            // the host failed: the visit counts against it
	MachineFault         // this machine failed: the visit is repeated, and does not count against any host
)

// A Doubt is a failure that may be this machine's or its host's. A later answer shows
// that the network works, and decides the Doubt against the host. If the breaker opens,
// the failure is this machine's.
type Doubt struct {
	breaker          *Breaker
	evidence         Evidence
	why              string
	at               time.Time
	answers, outages uint64  // of the breaker, when the visit failed
	verdict          Verdict // guarded by breaker.mu
}

// Decide returns whom the failure is charged to. While it returns Undecided, call it
// again when wait has passed or changed is closed.
func (d *Doubt) Decide(now time.Time) (v Verdict, wait time.Duration, changed <-chan struct{}) {
	b := d.breaker
	b.mu.Lock()
	defer b.mu.Unlock()
	if d.verdict == Undecided {
		d.verdict, wait = d.decide(now)
	}
	if d.verdict == Undecided {
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed = b.changed
	}
	return d.verdict, wait, changed
}

// decide is Decide for an undecided failure. It requires the breaker's lock, and opens
// the breaker if the failures suffice.
func (d *Doubt) decide(now time.Time) (v Verdict, wait time.Duration) {
	b := d.breaker
	limit := 1
	if d.evidence == Possible {
		limit = breakerDomains
	}
	long := float64(b.run.count()) >= float64(limit)+breakerFactor*b.average
	settled := b.run.first.Add(breakerSettle).Sub(now)
	left := d.at.Add(breakerPatience).Sub(now)
	switch {
	case b.outages > d.outages:
		return MachineFault, 0
	case b.answers > d.answers, b.distrusted:
		return HostFault, 0
	case long && settled <= 0:
		b.open(now, d.why, false)
		return MachineFault, 0
	case left <= 0:
		return HostFault, 0
	case long:
		return Undecided, min(settled, left)
	}
	return Undecided, left
}

// A failedRun is the failures between two answers. It counts both domains and
// addresses: an owner of many names has few addresses, and an owner of many addresses
// has few names.
type failedRun struct {
	domains, addrs map[string]struct{}
	answered       int // domains whose host has answered before
	first          time.Time
}

// add adds a failure of a host; proven says that the host has answered before.
func (r *failedRun) add(now time.Time, domain string, addr netip.Addr, proven bool) {
	if r.domains == nil {
		*r = failedRun{domains: map[string]struct{}{}, addrs: map[string]struct{}{}, first: now}
	}
	if len(r.domains) >= guards {
		return
	}
	if _, known := r.domains[domain]; !known {
		r.domains[domain] = struct{}{}
		if proven {
			r.answered++
		}
	}
	r.addrs[networkOf(domain, addr)] = struct{}{}
}

// networkOf returns the part of an address that makes it distinct: a /64 of IPv6 has
// one owner. If the address is unknown, the domain takes its place.
func networkOf(domain string, addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	switch {
	case !addr.IsValid():
		return domain
	case addr.Is6():
		if prefix, err := addr.Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return addr.String()
}

// count returns how many owners of hosts have failed.
func (r *failedRun) count() int { return min(len(r.domains), len(r.addrs)) }

// proven reports whether a host of most of the domains has answered before.
func (r *failedRun) proven() bool { return len(r.domains) > 0 && 2*r.answered >= len(r.domains) }
