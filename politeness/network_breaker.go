package politeness

import (
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/decorum-crawler/decorum"
)

// The constants of a Breaker. They are not settings: they apply to all crawls of a
// process, and a wrong value would charge hosts with this machine's faults.
const (
	// breakerDomains is how many domains must fail one after another, with no answer
	// between them, before Possible failures open the breaker. If half of all hosts are
	// dead, that happens by chance once in 256 times, and costs a second.
	breakerDomains = 8
	// breakerFactor raises the limit where hosts often fail: if runs of failures have
	// an average length of m, a share of e^-14 is longer than 14 m.
	breakerFactor = 14
	// breakerWeight is the weight of the newest run in that average.
	breakerWeight = 0.2
	// breakerSettle is how long no host must answer before the breaker opens: of hosts
	// visited at the same time, refusals arrive before answers.
	breakerSettle = 3 * time.Second
	// breakerPatience is how long a failure stays undecided while no host answers.
	breakerPatience = 10 * time.Second
	// breakerProbes is how many visits at a time probe whether the network works.
	breakerProbes = 2
	// minPause and maxPause bound a pause. It doubles with each failed probe that is
	// evidence about the network: see failProbe.
	minPause, maxPause = time.Second, time.Minute
	// giveUpUnproven is how long the breaker stays open if most of the hosts that
	// failed have never answered. Then it charges hosts, so that a crawl of dead hosts
	// ends.
	giveUpUnproven = 5 * time.Minute
	// giveUpProven is the same for hosts that have answered before.
	giveUpProven = 24 * time.Hour
)

// A Breaker is the circuit breaker of a process. It opens when visits fail because of
// this machine. While it is open, only an occasional probe may begin; the first answer
// of any host closes it. Crawls that share Hosts share it. It has no clock of its own.
// Its methods may be called concurrently.
type Breaker struct {
	mu         sync.Mutex // guards the fields below
	answers    uint64     // how many visits have been answered
	run        failedRun  // the failures since the last answer
	average    float64    // length of recent runs
	seen       map[string]struct{}
	answered   map[string]struct{} // hosts that have answered; guards bounds their number
	outage     *outage             // nil: the breaker is closed
	outages    uint64              // how often it has opened
	rounds     uint64              // of probes, in all outages
	distrusted bool                // it gave up: failures are the hosts' until one answers
	last       BreakerState        // see Changed
	changed    chan struct{}       // closed when a Doubt may be decided; nil: no Doubt waits
}

// An outage is a time when the breaker is open.
type outage struct {
	why     string
	certain bool          // there was a failure of Evidence Certain
	giveUp  time.Duration // how long until the breaker gives up, unless the evidence is Certain
	began   time.Time
	pause   time.Duration
	until   time.Time // when the next probes may begin
	round   uint64    // of these probes
	probes  int       // of this round that are under way
}

// A BreakerState says whether visits may begin.
type BreakerState struct {
	Open  bool      // only probes may begin
	Why   string    // what this machine lacks, or lacked when the breaker was open last
	Since time.Time // when it opened last
	// GaveUp is set if the breaker closed though no host has answered: from then on
	// failures are charged to hosts again.
	GaveUp bool
}

func newBreaker() *Breaker {
	return &Breaker{seen: map[string]struct{}{}, answered: map[string]struct{}{}}
}

// domainOf returns the part of a host's name that makes it distinct: the owner of a
// domain can have any number of names below it.
func domainOf(host string) string {
	if domain, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return domain
	}
	return host
}

// Answered records that a host has answered a visit that began at start, so the network
// works. An answer to an older visit does not show that new visits get descriptors.
func (b *Breaker) Answered(host string, start time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers++
	if _, known := b.answered[host]; !known { // finding its domain takes time
		b.note(domainOf(host))
		if len(b.answered) >= guards {
			clear(b.answered)
		}
		b.answered[host] = struct{}{}
	}
	b.average += breakerWeight * (float64(b.run.count()) - b.average)
	b.run = failedRun{}
	b.distrusted = false
	if o := b.outage; o != nil && (!o.certain || !start.Before(o.until)) {
		b.outage = nil
	}
	b.wake()
}

// note adds a host's domain to the first that were visited. It requires b.mu.
func (b *Breaker) note(domain string) {
	if len(b.seen) < breakerDomains {
		b.seen[domain] = struct{}{}
	}
}

// wake makes all Doubts check again. It requires b.mu.
func (b *Breaker) wake() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// Fail records a failed visit. The returned Doubt decides whom it is charged to,
// possibly after later events.
func (b *Breaker) Fail(now time.Time, f Failure) *Doubt {
	domain := domainOf(f.Host)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(domain)
	d := &Doubt{breaker: b, evidence: f.Evidence, why: f.Why, at: now, answers: b.answers, outages: b.outages}
	switch {
	case b.outage != nil:
		d.verdict = b.failProbe(now, f)
	case f.Evidence == Certain:
		b.open(now, f.Why, true)
		d.verdict = MachineFault
	case b.distrusted:
		d.verdict = HostFault
	default:
		_, proven := b.answered[f.Host]
		b.run.add(now, domain, f.Addr, proven)
		if f.Evidence == Possible && len(b.seen) < breakerDomains { // too few hosts to wait for
			d.verdict = HostFault
		}
	}
	return d
}

// failProbe records a visit that failed while the breaker is open. It requires b.mu.
func (b *Breaker) failProbe(now time.Time, f Failure) Verdict {
	o := b.outage
	if f.Evidence == Certain {
		o.why, o.certain = f.Why, true
	}
	if f.Start.Before(o.until) { // it began before the breaker opened
		return MachineFault
	}
	if f.Evidence != Certain && now.Sub(o.began) >= o.giveUp {
		b.outage, b.run, b.distrusted = nil, failedRun{}, true
		b.wake()
		return HostFault
	}
	// A failure of a host that never answered is weak evidence if other hosts have
	// answered: names that do not resolve, which one site can have in any number, must
	// not lengthen pauses.
	_, proven := b.answered[f.Host]
	if proven || len(b.answered) == 0 || f.Evidence != Possible {
		o.pause = min(2*o.pause, maxPause)
	}
	b.pause(now)
	return MachineFault
}

// open opens the breaker. It requires b.mu.
func (b *Breaker) open(now time.Time, why string, certain bool) {
	b.outages++
	b.outage = &outage{why: why, certain: certain, began: now, pause: minPause, giveUp: giveUpUnproven}
	if b.run.proven() {
		b.outage.giveUp = giveUpProven
	}
	b.pause(now)
	b.wake()
}

// pause begins a pause, after which there is a round of probes. It requires b.mu.
func (b *Breaker) pause(now time.Time) {
	b.rounds++
	o := b.outage
	o.until, o.round, o.probes = now.Add(o.pause), b.rounds, 0
}

// ready returns how many of want visits may begin now, and, if none, how long to wait.
// The wait is short, because an answer may close the breaker at any time.
func (b *Breaker) ready(now time.Time, want int) (grant int, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch o := b.outage; {
	case o == nil:
		return want, 0
	case now.Before(o.until):
		return 0, min(o.until.Sub(now), time.Second)
	case o.probes >= breakerProbes:
		return 0, time.Second
	default:
		return min(want, breakerProbes-o.probes), 0
	}
}

// admit lets a visit begin, or returns a *Paused. round is 0, except for a probe, whose
// round the caller passes to release after the visit.
func (b *Breaker) admit(now time.Time) (round uint64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.outage
	if o == nil {
		return 0, nil
	}
	if now.Before(o.until) || o.probes >= breakerProbes {
		return 0, &Paused{Why: o.why}
	}
	o.probes++
	return o.round, nil
}

// release ends a probe.
func (b *Breaker) release(round uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o := b.outage; o != nil && o.round == round {
		o.probes--
	}
}

// State returns whether visits may begin.
func (b *Breaker) State() BreakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state()
}

func (b *Breaker) state() BreakerState {
	if o := b.outage; o != nil {
		return BreakerState{Open: true, Why: o.why, Since: o.began}
	}
	s := b.last
	s.Open, s.GaveUp = false, b.distrusted
	return s
}

// Changed returns the state, and whether the breaker has opened or closed since the
// last call, so that only one of several callers logs a change.
func (b *Breaker) Changed() (s BreakerState, changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s = b.state()
	changed = s.Open != b.last.Open
	b.last = s
	return s, changed
}

// Paused is the error of Limits.Request while the Breaker is open.
type Paused struct{ Why string }

// Is makes errors.Is(err, decorum.NotDue) true.
func (p *Paused) Is(target error) bool { return target == decorum.NotDue }

// Error says why no visit begins.
func (p *Paused) Error() string { return "the crawl is paused: " + p.Why }
