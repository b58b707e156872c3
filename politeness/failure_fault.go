package politeness

import (
	"net/netip"
	"time"
)

// MachineFaultLikelihood says how likely it is that this machine, and not the host, made a visit
// fail.
type MachineFaultLikelihood uint8

// The levels of MachineFaultLikelihood.
const (
	// PossiblyMachine marks a failure that looks like the host's, such as a time-out or a refused
	// connection. If many hosts fail at once, this machine is at fault.
	PossiblyMachine MachineFaultLikelihood = iota
	// ProbablyMachine marks a failure that looks like this machine's, such as a network without a
	// route. If other hosts answer meanwhile, the host is at fault.
	ProbablyMachine
	// CertainlyMachine marks a failure in which the host had no part, such as a lack of file
	// descriptors.
	CertainlyMachine
)

// An UnansweredVisit is a visit that got no answer.
type UnansweredVisit struct {
	Host                   string     // as decorum.Origin.Host spells it
	Addr                   netip.Addr // address of the connection; zero: unknown
	Start                  time.Time  // start of the visit
	MachineFaultLikelihood MachineFaultLikelihood
	MachineFaultReason     string // what this machine lacks if it is at fault: "no route to the network"
}

// A FaultAttribution says what an UnansweredVisit is charged to: its host or this machine.
type FaultAttribution uint8

// The values of FaultAttribution.
const (
	UndecidedFault FaultAttribution = iota // a later answer or failure decides: see UndecidedFailure
	HostFault                              // the host failed: the failure counts against it
	MachineFault                           // this machine failed: the visit is repeated, and no host is charged
)

// An UndecidedFailure is a failed visit that the NetworkBreaker charges to its host or to this
// machine, at once or after later events. A later answer of any host shows that the network works:
// the failure is then the host's. If the breaker opens, the failure is this machine's.
type UndecidedFailure struct {
	breaker                *NetworkBreaker
	machineFaultLikelihood MachineFaultLikelihood
	machineFaultReason     string
	failedAt               time.Time
	// the breaker's answerCount and openCount when the visit failed
	answerCountAtFailure, breakerOpenCountAtFailure uint64
	fault                                           FaultAttribution // guarded by breaker.mu
}

// DecideFault returns what the failure is charged to. If that is UndecidedFault, call DecideFault
// again after wait, or earlier when changed is closed. wait is at most 10 s.
func (d *UndecidedFailure) DecideFault(
	now time.Time,
) (v FaultAttribution, wait time.Duration, changed <-chan struct{}) {
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

// decideFaultLocked implements DecideFault for an undecided failure, and opens the breaker if the
// failures suffice for it. The caller holds the breaker's mu.
func (d *UndecidedFailure) decideFaultLocked(now time.Time) (v FaultAttribution, wait time.Duration) {
	b := d.breaker
	minLength := 1
	if d.machineFaultLikelihood == PossiblyMachine {
		minLength = minFailedDomains
	}
	// The run is long if it exceeds what dead hosts cause by chance: see minFailedDomains and
	// runLengthFactor.
	isLong := float64(b.failureRun.failedOwnerCount()) >= float64(minLength)+runLengthFactor*b.meanFailureRunLength
	silenceLeft := b.failureRun.startedAt.Add(minSilence).Sub(now)
	remaining := d.failedAt.Add(decisionTimeout).Sub(now)
	switch {
	// Events since the failure take precedence over the length of the run.
	case b.openCount > d.breakerOpenCountAtFailure:
		return MachineFault, 0
	case b.answerCount > d.answerCountAtFailure, b.closedWithoutAnswer:
		return HostFault, 0
	// Without such an event, a long run in which no host has answered for minSilence opens the
	// breaker.
	case isLong && silenceLeft <= 0:
		b.open(now, d.machineFaultReason, false)
		return MachineFault, 0
	// After decisionTimeout without an event, a run that did not open the breaker is the hosts'
	// fault.
	case remaining <= 0:
		return HostFault, 0
	case isLong:
		return UndecidedFault, min(silenceLeft, remaining)
	}
	return UndecidedFault, remaining
}

// A networkFailureRun holds the failures since the last answer. It counts both domains and
// addresses, and the smaller number decides: one owner may have many names on few addresses, or
// many addresses under few names.
type networkFailureRun struct {
	// domains holds registered domains, networks the keys that addressOwnerKey returns
	domains, networks             map[string]struct{}
	previouslyAnsweredDomainCount int // domains whose failed host has answered before
	startedAt                     time.Time
}

// addFailure adds a failure of a host of domain. answeredBefore says whether the host has ever
// answered in this process. The run keeps at most pruneThreshold domains.
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

// addressOwnerKey returns what identifies the owner of addr: the /64 prefix of an IPv6 address, the
// whole of an IPv4 address, and domain if the address is unknown.
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

// failedOwnerCount returns a lower estimate of how many owners of hosts have failed.
func (r *networkFailureRun) failedOwnerCount() int { return min(len(r.domains), len(r.networks)) }
