package politeness

import (
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/internal/registrable"

	"github.com/decorum-crawler/decorum"
)

// The constants of a NetworkBreaker. They are not settings: they apply to all crawls of a
// process, and a wrong value would charge hosts with this machine's faults.
const (
	// minFailedDomains is how many domains must fail one after another, with no answer
	// between them, before PossiblyMachine failures open the breaker. If half of all hosts are
	// dead, that happens by chance once in 256 times, and costs a second.
	minFailedDomains = 8
	// runLengthFactor raises the limit where hosts often fail: if runs of failures have
	// an average length of m, a share of e^-14 is longer than 14 m.
	runLengthFactor = 14
	// runLengthWeight is the weight of the newest run in that average.
	runLengthWeight = 0.2
	// minSilence is how long no host must answer before the breaker opens: of hosts
	// visited at the same time, refusals arrive before answers.
	minSilence = 3 * time.Second
	// decisionTimeout is how long a failure stays undecided while no host answers.
	decisionTimeout = 10 * time.Second
	// maxProbes is how many visits at a time probe whether the network works.
	maxProbes = 2
	// minPause and maxPause bound a pause. It doubles with each failed probe that is
	// evidence about the network: see recordFailureWhileOpen.
	minPause, maxPause = time.Second, time.Minute
	// giveUpNeverAnswered is how long the breaker stays open if most of the hosts that
	// failed have never answered. Then it charges hosts, so that a crawl of dead hosts
	// ends.
	giveUpNeverAnswered = 5 * time.Minute
	// giveUpOnceAnswered is the same for hosts that have answered before.
	giveUpOnceAnswered = 24 * time.Hour
)

// A NetworkBreaker is the circuit breaker of a process. It opens when visits fail because of
// this machine. While it is open, only an occasional probe may begin; the first answer
// of any host closes it. Crawls that share SharedHosts share it. It has no clock of its own.
// Its methods may be called concurrently.
type NetworkBreaker struct {
	mu                   sync.Mutex        // guards the fields below
	answerCount          uint64            // how many visits have been answered
	failureRun           networkFailureRun // the failures since the last answer
	meanFailureRunLength float64           // length of recent runs
	firstVisitedDomains  map[string]struct{}
	answeredHosts        map[string]struct{} // hosts that have answered; guards bounds their number
	outage               *networkOutage      // nil: the breaker is closed
	openCount            uint64              // how often it has opened
	probeRounds          uint64              // of probes, in all outages
	closedWithoutAnswer  bool                // it gave up: failures are the hosts' until one answers
	lastReportedState    NetworkBreakerState // see PollStateChange
	failureRecheckSignal chan struct{}       // closed when an UndecidedFailure may be decided; nil: no UndecidedFailure waits
}

// A networkOutage is a time when the breaker is open.
type networkOutage struct {
	reason       string
	isCertain    bool          // there was a failure of MachineFaultLikelihood CertainlyMachine
	giveUpAfter  time.Duration // how long until the breaker gives up, unless the evidence is CertainlyMachine
	start        time.Time
	probePause   time.Duration
	probeAt      time.Time // when the next probes may begin
	probeRound   uint64    // of these probes
	activeProbes int       // of this round that are under way
}

// A NetworkBreakerState says whether visits may begin.
type NetworkBreakerState struct {
	Open     bool      // only probes may begin
	Reason   string    // what this machine lacks, or lacked when the breaker was open last
	OpenedAt time.Time // when it opened last
	// ClosedWithoutAnswer is set if the breaker closed though no host has answered: from then on
	// failures are charged to hosts again.
	ClosedWithoutAnswer bool
}

func newNetworkBreaker() *NetworkBreaker {
	return &NetworkBreaker{firstVisitedDomains: map[string]struct{}{}, answeredHosts: map[string]struct{}{}}
}

// RecordAnswer records that a host has answered a visit that began at start, so the network
// works. An answer to an older visit does not show that new visits get descriptors.
func (b *NetworkBreaker) RecordAnswer(host string, start time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answerCount++
	if _, known := b.answeredHosts[host]; !known { // finding its domain takes time
		b.addDomainIfAmongFirst(registrable.Domain(host))
		if len(b.answeredHosts) >= pruneThreshold {
			clear(b.answeredHosts)
		}
		b.answeredHosts[host] = struct{}{}
	}
	b.meanFailureRunLength += runLengthWeight * (float64(b.failureRun.failedOwnerCount()) - b.meanFailureRunLength)
	b.failureRun = networkFailureRun{}
	b.closedWithoutAnswer = false
	if o := b.outage; o != nil && (!o.isCertain || !start.Before(o.probeAt)) {
		b.outage = nil
	}
	b.wakeUndecidedFailures()
}

// addDomainIfAmongFirst adds a host's domain to the first that were visited. It requires b.mu.
func (b *NetworkBreaker) addDomainIfAmongFirst(domain string) {
	if len(b.firstVisitedDomains) < minFailedDomains {
		b.firstVisitedDomains[domain] = struct{}{}
	}
}

// wakeUndecidedFailures makes all UndecidedFailures check again. It requires b.mu.
func (b *NetworkBreaker) wakeUndecidedFailures() {
	if b.failureRecheckSignal != nil {
		close(b.failureRecheckSignal)
		b.failureRecheckSignal = nil
	}
}

// RecordFailure records a failed visit. The returned UndecidedFailure decides whom it is charged to,
// possibly after later events.
func (b *NetworkBreaker) RecordFailure(now time.Time, f UnansweredVisit) *UndecidedFailure {
	domain := registrable.Domain(f.Host)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addDomainIfAmongFirst(domain)
	d := &UndecidedFailure{breaker: b, machineFaultLikelihood: f.MachineFaultLikelihood, machineFaultReason: f.MachineFaultReason, failedAt: now, answerCountAtFailure: b.answerCount, breakerOpenCountAtFailure: b.openCount}
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
		if f.MachineFaultLikelihood == PossiblyMachine && len(b.firstVisitedDomains) < minFailedDomains { // too few hosts to wait for
			d.fault = HostFault
		}
	}
	return d
}

// recordFailureWhileOpen records a visit that failed while the breaker is open. It requires b.mu.
func (b *NetworkBreaker) recordFailureWhileOpen(now time.Time, f UnansweredVisit) FaultAttribution {
	o := b.outage
	if f.MachineFaultLikelihood == CertainlyMachine {
		o.reason, o.isCertain = f.MachineFaultReason, true
	}
	if f.Start.Before(o.probeAt) { // it began before the breaker opened
		return MachineFault
	}
	if f.MachineFaultLikelihood != CertainlyMachine && now.Sub(o.start) >= o.giveUpAfter {
		b.outage, b.failureRun, b.closedWithoutAnswer = nil, networkFailureRun{}, true
		b.wakeUndecidedFailures()
		return HostFault
	}
	// A failure of a host that never answered is weak evidence if other hosts have
	// answered: names that do not resolve, which one site can have in any number, must
	// not lengthen pauses.
	_, answeredBefore := b.answeredHosts[f.Host]
	if answeredBefore || len(b.answeredHosts) == 0 || f.MachineFaultLikelihood != PossiblyMachine {
		o.probePause = min(2*o.probePause, maxPause)
	}
	b.scheduleNextProbeRound(now)
	return MachineFault
}

// open opens the breaker. It requires b.mu.
func (b *NetworkBreaker) open(now time.Time, reason string, isCertain bool) {
	b.openCount++
	b.outage = &networkOutage{reason: reason, isCertain: isCertain, start: now, probePause: minPause, giveUpAfter: giveUpNeverAnswered}
	// Where a host of most of the domains has answered before, the network has worked.
	if run := &b.failureRun; len(run.domains) > 0 && 2*run.previouslyAnsweredDomainCount >= len(run.domains) {
		b.outage.giveUpAfter = giveUpOnceAnswered
	}
	b.scheduleNextProbeRound(now)
	b.wakeUndecidedFailures()
}

// scheduleNextProbeRound begins a pause, after which there is a round of probes. It requires b.mu.
func (b *NetworkBreaker) scheduleNextProbeRound(now time.Time) {
	b.probeRounds++
	o := b.outage
	o.probeAt, o.probeRound, o.activeProbes = now.Add(o.probePause), b.probeRounds, 0
}

// availableVisits returns how many of want visits may begin now, and, if none, how long to wait.
// The wait is short, because an answer may close the breaker at any time.
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

// admitVisit lets a visit begin, or says why not. round is 0, except for a probe, whose
// round the caller passes to release after the visit.
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

// releaseProbeSlot ends a probe.
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

func (b *NetworkBreaker) stateLocked() NetworkBreakerState {
	if o := b.outage; o != nil {
		return NetworkBreakerState{Open: true, Reason: o.reason, OpenedAt: o.start}
	}
	s := b.lastReportedState
	s.Open, s.ClosedWithoutAnswer = false, b.closedWithoutAnswer
	return s
}

// PollStateChange returns the state, and whether the breaker has opened or closed since the
// last call, so that only one of several callers logs a change.
func (b *NetworkBreaker) PollStateChange() (s NetworkBreakerState, changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s = b.stateLocked()
	changed = s.Open != b.lastReportedState.Open
	b.lastReportedState = s
	return s, changed
}
