package politeness

import (
	"net/netip"
	"time"
)

// MachineFaultLikelihood says how likely it is that a visit failed because of this machine, and
// not because of its host.
type MachineFaultLikelihood uint8

// The kinds of evidence.
const (
	// PossiblyMachine is a failure that looks like the host's, such as a time-out or a
	// connection that is refused. It is this machine's if many hosts fail at once.
	PossiblyMachine MachineFaultLikelihood = iota
	// ProbablyMachine is a failure that looks like this machine's, such as a network
	// without a route. It is the host's if other hosts answer meanwhile.
	ProbablyMachine
	// CertainlyMachine is a failure without any part of the host, such as a lack of file
	// descriptors.
	CertainlyMachine
)

// An UnansweredVisit is a visit that got no answer.
type UnansweredVisit struct {
	Host                   string
	Addr                   netip.Addr // the address of the connection; zero: unknown
	Start                  time.Time  // of the visit
	MachineFaultLikelihood MachineFaultLikelihood
	MachineFaultReason     string // what this machine lacks, if it is to blame: "no route to the network"
}

// A FaultAttribution says whom an UnansweredVisit is charged to.
type FaultAttribution uint8

// The verdicts.
const (
	UndecidedFault FaultAttribution = iota
	HostFault                       // the host failed: the visit counts against it
	MachineFault                    // this machine failed: the visit is repeated, and does not count against any host
)

// An UndecidedFailure is a failure that may be this machine's or its host's. A later answer shows
// that the network works, and decides the UndecidedFailure against the host. If the breaker opens,
// the failure is this machine's.
type UndecidedFailure struct {
	breaker                                         *NetworkBreaker
	machineFaultLikelihood                          MachineFaultLikelihood
	machineFaultReason                              string
	failedAt                                        time.Time
	answerCountAtFailure, breakerOpenCountAtFailure uint64           // of the breaker, when the visit failed
	fault                                           FaultAttribution // guarded by breaker.mu
}

// DecideFault returns whom the failure is charged to. While it returns UndecidedFault, call it
// again when wait has passed or changed is closed.
func (d *UndecidedFailure) DecideFault(now time.Time) (v FaultAttribution, wait time.Duration, changed <-chan struct{}) {
	b := d.breaker
	b.mu.Lock()
	defer b.mu.Unlock()
	if d.fault == UndecidedFault {
		d.fault, wait = d.decideFaultLocked(now)
	}
	if d.fault == UndecidedFault {
		if b.failureRecheckSignal == nil {
			b.failureRecheckSignal = make(chan struct{})
		}
		changed = b.failureRecheckSignal
	}
	return d.fault, wait, changed
}

// decideFaultLocked is DecideFault for an undecided failure. It requires the breaker's lock, and opens
// the breaker if the failures suffice.
func (d *UndecidedFailure) decideFaultLocked(now time.Time) (v FaultAttribution, wait time.Duration) {
	b := d.breaker
	minLength := 1
	if d.machineFaultLikelihood == PossiblyMachine {
		minLength = minFailedDomains
	}
	isLong := float64(b.failureRun.failedOwnerCount()) >= float64(minLength)+runLengthFactor*b.meanFailureRunLength
	silenceLeft := b.failureRun.startedAt.Add(minSilence).Sub(now)
	remaining := d.failedAt.Add(decisionTimeout).Sub(now)
	switch {
	case b.openCount > d.breakerOpenCountAtFailure:
		return MachineFault, 0
	case b.answerCount > d.answerCountAtFailure, b.closedWithoutAnswer:
		return HostFault, 0
	case isLong && silenceLeft <= 0:
		b.open(now, d.machineFaultReason, false)
		return MachineFault, 0
	case remaining <= 0:
		return HostFault, 0
	case isLong:
		return UndecidedFault, min(silenceLeft, remaining)
	}
	return UndecidedFault, remaining
}

// A networkFailureRun is the failures between two answers. It counts both domains and
// addresses: an owner of many names has few addresses, and an owner of many addresses
// has few names.
type networkFailureRun struct {
	domains, networks             map[string]struct{}
	previouslyAnsweredDomainCount int // domains whose host has answered before
	startedAt                     time.Time
}

// addFailure adds a failure of a host; proven says that the host has answered before.
func (r *networkFailureRun) addFailure(now time.Time, domain string, addr netip.Addr, answeredBefore bool) {
	if r.domains == nil {
		*r = networkFailureRun{domains: map[string]struct{}{}, networks: map[string]struct{}{}, startedAt: now}
	}
	if len(r.domains) >= pruneThreshold {
		return
	}
	if _, known := r.domains[domain]; !known {
		r.domains[domain] = struct{}{}
		if answeredBefore {
			r.previouslyAnsweredDomainCount++
		}
	}
	r.networks[addressOwnerKey(domain, addr)] = struct{}{}
}

// addressOwnerKey returns the part of an address that makes it distinct: a /64 of IPv6 has
// one owner. If the address is unknown, the domain takes its place.
func addressOwnerKey(domain string, addr netip.Addr) string {
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

// failedOwnerCount returns how many owners of hosts have failed.
func (r *networkFailureRun) failedOwnerCount() int { return min(len(r.domains), len(r.networks)) }
