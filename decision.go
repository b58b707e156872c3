package decorum

import (
	"errors"
	"fmt"
	"time"
)

// A Decision is whether a URL whose turn it is may be visited now, and if not, why, and what
// becomes of it. The zero Decision lets the visit proceed. A Decision is no error: a failure
// to decide, of a store say, is.
//
// A crawl asks in this order, and the first that does not let the visit proceed decides:
//
//  1. scope (frontier): ReasonScope;
//  2. robots.txt (robots/gate): ReasonRobotsPending, ReasonRobotsUnreachable, ReasonRobots; of a
//     redirect of one: ReasonDropped, ReasonRobotsRedirect;
//  3. tdmrep.json, where the crawl mines text and data: ReasonTDMRepPending,
//     ReasonTDMRepUnreachable, ReasonTDMRep;
//  4. what the host may have at most: ReasonHostBytes, ReasonHostPages;
//  5. the other processes of the crawl: ReasonOtherProcesses;
//  6. the hours of visits, of the operator and of robots.txt: ReasonVisitHours;
//  7. a Crawl-delay that the crawl does not wait for: ReasonCrawlDelay;
//  8. brakes: ReasonBrake;
//  9. politeness (Limiter.Reserve): ReasonNetwork, ReasonHostRest, ReasonHostBusy,
//     ReasonRequestRate, ReasonAddressBusy; before it, ReasonHostRest where the Crawl-delay has
//     become longer since the last visit;
//  10. what the run may have at most: ReasonByteLimit, ReasonPageLimit, ReasonOtherProcesses.
//
// Then the visit has its ticket. Before its first byte is sent, the transport may still find
// ReasonPort, ReasonBodyMemory, ReasonLocalFailure, ReasonBrake, ReasonOtherProcesses or
// ReasonAddressBusy.
type Decision struct {
	Action Action
	Reason DecisionReason // empty if the visit may proceed
	Until  time.Time      // when to ask again; zero: when what Reason names changes
	Rule   string         // the line that decides, of robots.txt or tdmrep.json, or the host of a brake; empty: none
	Line   int            // its number in the file; 0: it has none
	Detail string         // what Reason does not say: which address, what the machine lacks
	Rest   time.Duration  // of ReasonHostRest: for how much longer; of ReasonCrawlDelay: for how long the host asks
	Limit  int64          // what is reached: a number of pages or bytes; of ReasonCrawlDelay, a time.Duration
	Cause  error          // the error of the part that decided, if it gave one: Err is of its text, and wraps it
}

// An Action is what becomes of a URL whose turn it is.
type Action uint8

// The actions.
const (
	// Proceed: the URL is visited.
	Proceed Action = iota
	// Postpone: the URL goes back into its queue, and its turn comes again at Decision.Until or
	// when what Decision.Reason names has changed. A run waits for it.
	Postpone
	// Suspend is Postpone for so long, or for so little hope, that no run waits: one that has
	// nothing else left ends.
	Suspend
	// Refuse: the URL is not visited as things stand. It is parked until its scope or its rules
	// change, or given up, as Decision.Reason says.
	Refuse
)

// String returns the action in a word.
func (a Action) String() string {
	names := [...]string{"proceed", "postpone", "suspend", "refuse"}
	if int(a) < len(names) {
		return names[a]
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// A DecisionReason is why a URL is not visited now.
type DecisionReason string

// The reasons. errors.Is(d.Err(), kind) holds for the ErrorKind that is named.
const (
	// ReasonScope: the URL does not belong to the crawl. It is parked until the scope changes.
	// OutOfScope.
	ReasonScope DecisionReason = "out of scope"
	// ReasonRobots: robots.txt disallows it. It is parked until other rules allow it. Disallowed.
	ReasonRobots DecisionReason = "robots.txt"
	// ReasonTDMRep: tdmrep.json reserves it, and the crawl mines text and data. It is parked until
	// the file allows it. Disallowed.
	ReasonTDMRep DecisionReason = "tdmrep.json"
	// ReasonRobotsPending: its robots.txt is being fetched. Its origin waits a few seconds. Pending.
	ReasonRobotsPending DecisionReason = "robots.txt pending"
	// ReasonRobotsUnreachable: its robots.txt cannot be had. Its origin waits until it is asked for
	// again. Unreachable.
	ReasonRobotsUnreachable DecisionReason = "robots.txt unreachable"
	// ReasonTDMRepPending: its tdmrep.json is being fetched. Its origin waits a few seconds. Pending.
	ReasonTDMRepPending DecisionReason = "tdmrep.json pending"
	// ReasonTDMRepUnreachable: its tdmrep.json cannot be had. Its origin waits until it is asked for
	// again. Unreachable.
	ReasonTDMRepUnreachable DecisionReason = "tdmrep.json unreachable"
	// ReasonDropped: it is a redirect of a robots.txt for which nobody waits any more. It is given
	// up. Dropped.
	ReasonDropped DecisionReason = "dropped"
	// ReasonRobotsRedirect: it is a redirect of a robots.txt, and the rules of the host that it leads
	// to disallow it. It is given up, and the robots.txt counts as missing. Dropped.
	ReasonRobotsRedirect DecisionReason = "redirect of robots.txt disallowed"
	// ReasonHostPages: its host has had the pages that it may have. The URL goes behind the revisits
	// of its origin, which is set aside when only such URLs are left.
	ReasonHostPages DecisionReason = "host budget of pages"
	// ReasonHostBytes: its host has sent the bytes that it may send. As ReasonHostPages.
	ReasonHostBytes DecisionReason = "host budget of bytes"
	// ReasonOtherProcesses: it is not known what other processes of the crawl say, or they have taken
	// all that is permitted for now. Its origin waits a moment. NotDue.
	ReasonOtherProcesses DecisionReason = "other processes"
	// ReasonVisitHours: it is outside the hours of visits. Its origin waits for them.
	ReasonVisitHours DecisionReason = "hours of visits"
	// ReasonCrawlDelay: its host asks for a longer rest than the crawl waits for. Its origin is set
	// aside.
	ReasonCrawlDelay DecisionReason = "Crawl-delay too long"
	// ReasonBrake: a brake stops its host, whose origin is set aside, or slows it, and its origin
	// waits; until the brake lets it be visited or is changed. NotDue.
	ReasonBrake DecisionReason = "brake"
	// ReasonNetwork: visits are paused because they fail on this machine. Its turn comes again when
	// visits begin again. NotDue.
	ReasonNetwork DecisionReason = "machine's network"
	// ReasonHostRest: its host rests after a visit of this crawl. The host is due later. NotDue.
	ReasonHostRest DecisionReason = "host rests"
	// ReasonHostBusy: its host rests, or has all its visits, because of other crawls. Its origin waits
	// until it is called. NotDue.
	ReasonHostBusy DecisionReason = "host busy"
	// ReasonAddressBusy: the same of the IP address of its host, because of other hosts. NotDue.
	ReasonAddressBusy DecisionReason = "address busy"
	// ReasonRequestRate: the crawl makes as many requests a second as it may. Its origin waits a
	// moment. NotDue.
	ReasonRequestRate DecisionReason = "request rate"
	// ReasonByteLimit: the run has received the bytes that it may receive. It ends; the URL stays
	// queued.
	ReasonByteLimit DecisionReason = "byte limit"
	// ReasonPageLimit: the run has visited the pages that it may visit. It ends; the URL stays queued.
	ReasonPageLimit DecisionReason = "page limit"
	// ReasonPort: its port is for another service than the web. It is given up as a page that fails.
	ReasonPort DecisionReason = "port"
	// ReasonBodyMemory: the bodies of answers under way take all of their memory. Its origin waits a
	// few seconds. LocalFailure.
	ReasonBodyMemory DecisionReason = "body memory"
	// ReasonLocalFailure: this machine could not connect. The URL goes back into its queue.
	// LocalFailure.
	ReasonLocalFailure DecisionReason = "failed on this machine"
)

// kind returns the ErrorKind of a reason whose decisions have no Cause; empty if it has none.
func (r DecisionReason) kind() ErrorKind {
	switch r {
	case ReasonOtherProcesses, ReasonBrake, ReasonNetwork, ReasonHostRest, ReasonHostBusy, ReasonAddressBusy,
		ReasonRequestRate:
		return NotDue
	}
	return ""
}

// Err returns nil if the visit may proceed, else an error that carries d: see DecisionOf. Its
// text is put together when it is asked for.
func (d Decision) Err() error {
	if d.Action == Proceed {
		return nil
	}
	return &decisionError{d}
}

// DecisionOf returns the Decision that err, or what it wraps, carries; false if there is none.
func DecisionOf(err error) (Decision, bool) {
	if e, ok := errors.AsType[*decisionError](err); ok {
		return e.decision, true
	}
	return Decision{}, false
}

// A decisionError is a Decision as an error.
type decisionError struct{ decision Decision }

// Is makes errors.Is(err, decorum.NotDue) true for reasons that are of this kind.
func (e *decisionError) Is(target error) bool {
	kind := e.decision.Reason.kind()
	return kind != "" && target == kind
}

// Unwrap returns the cause.
func (e *decisionError) Unwrap() error { return e.decision.Cause }

// Error returns the text of the cause, or else one of the reason.
func (e *decisionError) Error() string {
	d := &e.decision
	if d.Cause != nil {
		return d.Cause.Error()
	}
	until := d.Until.UTC().Format(time.RFC3339)
	switch d.Reason {
	case ReasonVisitHours:
		return "outside the hours of visits; closed until " + until
	case ReasonCrawlDelay:
		return fmt.Sprintf("its Crawl-delay of %v is longer than max_crawl_delay, %v; closed until %s",
			d.Rest, time.Duration(d.Limit), until)
	case ReasonHostPages:
		return fmt.Sprintf("the host has had its %d pages; closed until %s", d.Limit, until)
	case ReasonHostBytes:
		return fmt.Sprintf("the host has sent its %d bytes; closed until %s", d.Limit, until)
	case ReasonNetwork:
		return "the crawl is paused: " + d.Detail
	case ReasonHostRest:
		return fmt.Sprintf("the host is not due for another %v", d.Rest)
	case ReasonHostBusy:
		return "the host is busy until " + until
	case ReasonAddressBusy:
		return "the address " + d.Detail + " is busy until " + until
	case ReasonRequestRate:
		return "the crawl's own limit of requests is busy until " + until
	case ReasonOtherProcesses:
		return d.Detail + " is busy until " + until
	}
	if d.Detail != "" {
		return d.Detail
	}
	return string(d.Reason)
}
