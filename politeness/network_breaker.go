package politeness

import (
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/internal/registrable"

	"github.com/decorum-crawler/decorum"
)

// These constants of a NetworkBreaker are not settings: they apply to all crawls of a process, and
// a wrong value would charge hosts with this machine's faults.
const (
	// minFailedDomains is how many domains must fail one after another, with no answer between
	// them, before PossiblyMachine failures open the breaker. If half of all hosts are dead, that
	// happens by chance once in 256 times, and costs a pause of one second.
	minFailedDomains = 8
	// runLengthFactor raises the limit where hosts often fail: if runs of failures have an average
	// length of m, a share of e^-14 of them is longer than 14 m.
	runLengthFactor = 14
	// runLengthWeight is the weight of the newest run in that average.
	runLengthWeight = 0.2
	// minSilence is how long no host must answer before the breaker opens: among hosts visited at
	// the same time, refusals arrive before answers.
	minSilence = 3 * time.Second
	// decisionTimeout is how long a failure stays undecided while no host answers.
	decisionTimeout = 10 * time.Second
	// maxProbes is how many visits at a time probe whether the network works.
	maxProbes = 2
	// minPause and maxPause bound the pause between two rounds of probes. It doubles with each
	// failed probe that is evidence about the network: see recordFailureWhileOpen.
	minPause, maxPause = time.Second, time.Minute
	// giveUpNeverAnswered is how long the breaker stays open if most of the failed hosts have
	// never answered. After that it charges hosts, so that a crawl of dead hosts ends.
	giveUpNeverAnswered = 5 * time.Minute
	// giveUpOnceAnswered is how long it stays open if at least half of the failed domains have a
	// host that has answered before.
	giveUpOnceAnswered = 24 * time.Hour
)

// A NetworkBreaker is the circuit breaker of a process. It opens when visits fail because of this
// machine. While it is open, only an occasional probe may begin, and the first answer of any host
// closes it. Crawls that share SharedHosts share its NetworkBreaker. It reads no clock. Its methods
// may be called concurrently.
type NetworkBreaker struct {
	mu                   sync.Mutex          // guards all fields, outage and failureRun with what they hold
	answerCount          uint64              // number of answered visits
	failureRun           networkFailureRun   // failures since the last answer
	meanFailureRunLength float64             // moving mean of the lengths of past runs
	firstVisitedDomains  map[string]struct{} // the first minFailedDomains domains that were visited
	answeredHosts        map[string]struct{} // hosts that have answered; cleared at pruneThreshold
	outage               *networkOutage      // nil while the breaker is closed
	openCount            uint64              // how often the breaker has opened
	probeRounds          uint64              // rounds of probes in all outages
	// closedWithoutAnswer is set after the breaker gave up: hosts are charged with failures until
	// one answers.
	closedWithoutAnswer bool
	lastReportedState   NetworkBreakerState // see PollStateChange
	// failureRecheckSignal is closed when an UndecidedFailure may be decided; nil if no caller
	// waits.
	failureRecheckSignal chan struct{}
}

// A networkOutage is a period in which the breaker is open.
type networkOutage struct {
	reason       string        // what this machine lacks
	isCertain    bool          // a failure of this outage was CertainlyMachine
	giveUpAfter  time.Duration // from start; CertainlyMachine failures do not end it
	start        time.Time
	probePause   time.Duration // pause before the next round of probes
	probeAt      time.Time     // earliest start of the probes of this round
	probeRound   uint64        // number of this round
	activeProbes int           // probes of this round under way, at most maxProbes
}

// A NetworkBreakerState says whether visits may begin.
type NetworkBreakerState struct {
	Open     bool      // only probes may begin
	Reason   string    // what this machine lacks, or lacked when the breaker was last open
	OpenedAt time.Time // when the breaker last opened
	// ClosedWithoutAnswer is set if the breaker gave up and closed although no host has answered.
	// Hosts are charged with failures again.
	ClosedWithoutAnswer bool
}

// newNetworkBreaker returns a closed breaker.
func newNetworkBreaker() *NetworkBreaker {
	return &NetworkBreaker{firstVisitedDomains: map[string]struct{}{}, answeredHosts: map[string]struct{}{}}
}

// RecordAnswer records that host has answered a visit that began at start. An answer shows that the
// network works and closes the breaker. If the outage is certain, only a visit that began with the
// current round of probes or later closes it: an older visit does not show that new visits get file
// descriptors.
func (b *NetworkBreaker) RecordAnswer(host string, start time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answerCount++
	if _, known := b.answeredHosts[host]; !known { // finding the domain takes time
		b.addDomainIfAmongFirst(registrable.Domain(host))
		if len(b.answeredHosts) >= pruneThreshold {
			clear(b.answeredHosts)
		}
		b.answeredHosts[host] = struct{}{}
	}
	// The answer ends the run of failures.
	b.meanFailureRunLength += runLengthWeight * (float64(b.failureRun.failedOwnerCount()) - b.meanFailureRunLength)
	b.failureRun = networkFailureRun{}
	b.closedWithoutAnswer = false
	if o := b.outage; o != nil && (!o.isCertain || !start.Before(o.probeAt)) {
		b.outage = nil
	}
	b.wakeUndecidedFailures()
}

// addDomainIfAmongFirst adds domain to the first minFailedDomains domains. The caller holds b.mu.
func (b *NetworkBreaker) addDomainIfAmongFirst(domain string) {
	if len(b.firstVisitedDomains) < minFailedDomains {
		b.firstVisitedDomains[domain] = struct{}{}
	}
}

// wakeUndecidedFailures has the callers of DecideFault call it again. The caller holds b.mu.
func (b *NetworkBreaker) wakeUndecidedFailures() {
	if b.failureRecheckSignal != nil {
		close(b.failureRecheckSignal)
		b.failureRecheckSignal = nil
	}
}

// RecordFailure records a failed visit. The returned UndecidedFailure decides what it is charged
// to, possibly after later events.
func (b *NetworkBreaker) RecordFailure(now time.Time, f UnansweredVisit) *UndecidedFailure {
	domain := registrable.Domain(f.Host)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addDomainIfAmongFirst(domain)
	d := &UndecidedFailure{breaker: b, machineFaultLikelihood: f.MachineFaultLikelihood,
		machineFaultReason: f.MachineFaultReason, failedAt: now, answerCountAtFailure: b.answerCount,
		breakerOpenCountAtFailure: b.openCount}
	switch {
	case b.outage != nil:
		d.fault = b.recordFailureWhileOpen(now, f)
	case f.MachineFaultLikelihood == CertainlyMachine:
		b.open(now, f.MachineFaultReason, true)
		d.fault = MachineFault
	case b.closedWithoutAnswer:
		d.fault = HostFault
	default:
		_, answeredBefore := b.answeredHosts[f.Host]
		b.failureRun.addFailure(now, domain, f.Addr, answeredBefore)
		// A crawl of few domains could never complete a run, so its failures are not held back.
		if f.MachineFaultLikelihood == PossiblyMachine && len(b.firstVisitedDomains) < minFailedDomains {
			d.fault = HostFault
		}
	}
	return d
}

// recordFailureWhileOpen records a visit that failed while the breaker is open, and returns what it
// is charged to. The caller holds b.mu.
func (b *NetworkBreaker) recordFailureWhileOpen(now time.Time, f UnansweredVisit) FaultAttribution {
	o := b.outage
	if f.MachineFaultLikelihood == CertainlyMachine {
		o.reason, o.isCertain = f.MachineFaultReason, true
	}
	if f.Start.Before(o.probeAt) { // it is not a probe of this round
		return MachineFault
	}
	if f.MachineFaultLikelihood != CertainlyMachine && now.Sub(o.start) >= o.giveUpAfter {
		b.outage, b.failureRun, b.closedWithoutAnswer = nil, networkFailureRun{}, true
		b.wakeUndecidedFailures()
		return HostFault
	}
	// A failed host that never answered is weak evidence if other hosts have answered: one site can
	// have any number of names that do not resolve, and these must not lengthen pauses.
	_, answeredBefore := b.answeredHosts[f.Host]
	if answeredBefore || len(b.answeredHosts) == 0 || f.MachineFaultLikelihood != PossiblyMachine {
		o.probePause = min(2*o.probePause, maxPause)
	}
	b.scheduleNextProbeRound(now)
	return MachineFault
}

// open opens the breaker. The caller holds b.mu.
func (b *NetworkBreaker) open(now time.Time, reason string, isCertain bool) {
	b.openCount++
	b.outage = &networkOutage{reason: reason, isCertain: isCertain, start: now, probePause: minPause,
		giveUpAfter: giveUpNeverAnswered}
	// If hosts of at least half of the failed domains have answered before, the network has worked,
	// and probably will again: wait longer.
	if run := &b.failureRun; len(run.domains) > 0 && 2*run.previouslyAnsweredDomainCount >= len(run.domains) {
		b.outage.giveUpAfter = giveUpOnceAnswered
	}
	b.scheduleNextProbeRound(now)
	b.wakeUndecidedFailures()
}

// scheduleNextProbeRound begins a pause, after which the next round of probes may begin. The caller
// holds b.mu.
func (b *NetworkBreaker) scheduleNextProbeRound(now time.Time) {
	b.probeRounds++
	o := b.outage
	o.probeAt, o.probeRound, o.activeProbes = now.Add(o.probePause), b.probeRounds, 0
}

// availableVisits returns how many of want visits may begin now. If that is 0, wait is how long to
// wait: at most a second, because an answer may close the breaker at any time.
func (b *NetworkBreaker) availableVisits(now time.Time, want int) (grant int, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch o := b.outage; {
	case o == nil:
		return want, 0
	case now.Before(o.probeAt):
		return 0, min(o.probeAt.Sub(now), time.Second)
	case o.activeProbes >= maxProbes:
		return 0, time.Second
	default:
		return min(want, maxProbes-o.activeProbes), 0
	}
}

// admitVisit admits a visit, or returns the Decision to Postpone it. round is 0 unless the visit is
// a probe; the caller passes it to releaseProbeSlot after the visit.
func (b *NetworkBreaker) admitVisit(now time.Time) (round uint64, d decorum.Decision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.outage
	if o == nil {
		return 0, decorum.Decision{}
	}
	if now.Before(o.probeAt) || o.activeProbes >= maxProbes {
		return 0, decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonNetwork, Detail: o.reason}
	}
	o.activeProbes++
	return o.probeRound, decorum.Decision{}
}

// releaseProbeSlot ends a probe of round. It ignores a round that is over.
func (b *NetworkBreaker) releaseProbeSlot(round uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o := b.outage; o != nil && o.probeRound == round {
		o.activeProbes--
	}
}

// State returns whether visits may begin.
func (b *NetworkBreaker) State() NetworkBreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stateLocked()
}

// stateLocked implements State. The caller holds b.mu.
func (b *NetworkBreaker) stateLocked() NetworkBreakerState {
	if o := b.outage; o != nil {
		return NetworkBreakerState{Open: true, Reason: o.reason, OpenedAt: o.start}
	}
	s := b.lastReportedState
	s.Open, s.ClosedWithoutAnswer = false, b.closedWithoutAnswer
	return s
}

// PollStateChange returns the state, and whether the breaker has opened or closed since the last
// call. If several callers poll, exactly one of them sees a change and can log it.
func (b *NetworkBreaker) PollStateChange() (s NetworkBreakerState, changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s = b.stateLocked()
	changed = s.Open != b.lastReportedState.Open
	b.lastReportedState = s
	return s, changed
}
