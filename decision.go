package decorum

import (
	"errors"
	"fmt"
	"time"
)

// A Decision says whether a leased URL may be visited now, and if not, why not and what happens to
// the URL. The zero Decision lets the visit proceed. A Decision is not an error; a failure to
// decide, for example of a store, is one.
//
// A crawl makes these checks in this order. The first that does not let the visit proceed decides:
//
//  1. scope (frontier): ReasonScope;
//  2. robots.txt (robots/gate): ReasonRobotsPending, ReasonRobotsUnreachable, ReasonRobots; for a
//     redirect of a robots.txt: ReasonDropped, ReasonRobotsRedirect;
//  3. tdmrep.json, if the crawl mines text and data: ReasonTDMRepPending,
//     ReasonTDMRepUnreachable, ReasonTDMRep;
//  4. the budgets of the host: ReasonHostBytes, ReasonHostPages;
//  5. the other processes of the crawl: ReasonOtherProcesses;
//  6. the visit hours of the operator and of robots.txt: ReasonVisitHours;
//  7. a Crawl-delay longer than the crawl accepts: ReasonCrawlDelay;
//  8. brakes: ReasonBrake;
//  9. politeness (Limiter.Reserve): ReasonNetwork, ReasonHostRest, ReasonHostBusy,
//     ReasonRequestRate, ReasonAddressBusy; before it, ReasonHostRest if the Crawl-delay has
//     become longer since the last visit;
//  10. the limits of the run: ReasonByteLimit, ReasonPageLimit, ReasonOtherProcesses.
//
// A visit that passes all checks has its ticket. Before the transport sends the first byte, it may
// still report ReasonPort, ReasonBodyMemory, ReasonLocalFailure, ReasonBrake, ReasonOtherProcesses
// or ReasonAddressBusy.
type Decision struct {
	Action Action
	Reason DecisionReason // empty if the visit may proceed
	Until  time.Time      // when to check again; zero: when the state that Reason names changes
	Rule   string         // the deciding line of robots.txt or tdmrep.json, or the host of a brake; may be empty
	Line   int            // the number of Rule in its file, from 1; 0 if it has none
	Detail string         // what Reason does not say: which address, what the machine lacks
	Rest   time.Duration  // ReasonHostRest: how much longer; ReasonCrawlDelay: the delay that the host demands
	Limit  int64          // the limit that is reached, in pages or bytes; ReasonCrawlDelay: a time.Duration
	Cause  error          // the error of the part that decided; may be nil. Err has its text and wraps it
}

// An Action says what happens to a leased URL.
type Action uint8

// The actions.
const (
	// Proceed: the URL is visited.
	Proceed Action = iota
	// Postpone: the URL returns to its queue and is leased again at Decision.Until, or when the
	// state that Decision.Reason names has changed. A run waits for it.
	Postpone
	// Suspend is Postpone for a wait that is so long or so unlikely to succeed that a run does not
	// wait: it ends when only suspended URLs are left.
	Suspend
	// Refuse: the URL is not visited under its present scope and rules. It is parked until these
	// change, or given up; Decision.Reason says which.
	Refuse
)

// String returns the action as one lower case word.
func (a Action) String() string {
	names := [...]string{"proceed", "postpone", "suspend", "refuse"}
	if int(a) < len(names) {
		return names[a]
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// A DecisionReason says why a URL is not visited now.
type DecisionReason string

// The reasons. "Kind: X" at the end of a comment means that errors.Is(d.Err(), X) holds.
const (
	// ReasonScope: the URL does not belong to the crawl. It is parked until the scope changes.
	// Kind: OutOfScope.
	ReasonScope DecisionReason = "out of scope"
	// ReasonRobots: robots.txt disallows the URL. It is parked until new rules allow it.
	// Kind: Disallowed.
	ReasonRobots DecisionReason = "robots.txt"
	// ReasonTDMRep: tdmrep.json reserves the URL, and the crawl mines text and data. The URL is
	// parked until the file allows it. Kind: Disallowed.
	ReasonTDMRep DecisionReason = "tdmrep.json"
	// ReasonRobotsPending: the robots.txt of the URL is being fetched. Its origin waits a few
	// seconds. Kind: Pending.
	ReasonRobotsPending DecisionReason = "robots.txt pending"
	// ReasonRobotsUnreachable: the robots.txt of the URL cannot be fetched. Its origin waits until
	// the next attempt. Kind: Unreachable.
	ReasonRobotsUnreachable DecisionReason = "robots.txt unreachable"
	// ReasonTDMRepPending: the tdmrep.json of the URL is being fetched. Its origin waits a few
	// seconds. Kind: Pending.
	ReasonTDMRepPending DecisionReason = "tdmrep.json pending"
	// ReasonTDMRepUnreachable: the tdmrep.json of the URL cannot be fetched. Its origin waits until
	// the next attempt. Kind: Unreachable.
	ReasonTDMRepUnreachable DecisionReason = "tdmrep.json unreachable"
	// ReasonDropped: the URL is the target of a robots.txt redirect that no fetch waits for any
	// more. It is given up. Kind: Dropped.
	ReasonDropped DecisionReason = "dropped"
	// ReasonRobotsRedirect: the URL is the target of a robots.txt redirect, and the rules of its own
	// host disallow it. It is given up, and the robots.txt counts as missing. Kind: Dropped.
	ReasonRobotsRedirect DecisionReason = "redirect of robots.txt disallowed"
	// ReasonHostPages: the host has used up its budget of pages. The URL moves behind the revisits of
	// its origin. The origin is suspended when only such URLs are left.
	ReasonHostPages DecisionReason = "host budget of pages"
	// ReasonHostBytes: the host has used up its budget of bytes. The URL is treated as with
	// ReasonHostPages.
	ReasonHostBytes DecisionReason = "host budget of bytes"
	// ReasonOtherProcesses: the state of the other processes of the crawl is unknown, or they have
	// used up what all may use together for now. The origin waits a moment. Kind: NotDue.
	ReasonOtherProcesses DecisionReason = "other processes"
	// ReasonVisitHours: it is outside the visit hours. The origin waits until they begin.
	ReasonVisitHours DecisionReason = "hours of visits"
	// ReasonCrawlDelay: the host demands a longer delay than the crawl accepts. Its origin is
	// suspended.
	ReasonCrawlDelay DecisionReason = "Crawl-delay too long"
	// ReasonBrake: a brake stops the host, and its origin is suspended; or a brake slows the host,
	// and its origin waits. Both last until the brake permits a visit or is changed. Kind: NotDue.
	ReasonBrake DecisionReason = "brake"
	// ReasonNetwork: visits are paused because they fail on this machine. The URL is leased again
	// when visits resume. Kind: NotDue.
	ReasonNetwork DecisionReason = "machine's network"
	// ReasonHostRest: the host rests after a visit of this crawl and is due later. Kind: NotDue.
	ReasonHostRest DecisionReason = "host rests"
	// ReasonHostBusy: the host rests because of another crawl's visit, or other crawls make all the
	// visits that it may have at a time. Its origin waits until it is notified. Kind: NotDue.
	ReasonHostBusy DecisionReason = "host busy"
	// ReasonAddressBusy is ReasonHostBusy for the IP address of the host, because of other hosts at
	// that address. Kind: NotDue.
	ReasonAddressBusy DecisionReason = "address busy"
	// ReasonRequestRate: the crawl has reached its own limit of requests per second. The origin waits
	// a moment. Kind: NotDue.
	ReasonRequestRate DecisionReason = "request rate"
	// ReasonByteLimit: the run has reached its limit of received bytes. The run ends; the URL stays
	// queued.
	ReasonByteLimit DecisionReason = "byte limit"
	// ReasonPageLimit: the run has reached its limit of visited pages. The run ends; the URL stays
	// queued.
	ReasonPageLimit DecisionReason = "page limit"
	// ReasonPort: the port belongs to another service than the web. The URL is given up as a page
	// that fails.
	ReasonPort DecisionReason = "port"
	// ReasonBodyMemory: bodies that are being received use all the memory reserved for bodies. The
	// origin waits a few seconds. Kind: LocalFailure.
	ReasonBodyMemory DecisionReason = "body memory"
	// ReasonLocalFailure: this machine could not connect. The URL returns to its queue.
	// Kind: LocalFailure.
	ReasonLocalFailure DecisionReason = "failed on this machine"
)

// kind returns the ErrorKind of a reason whose decisions have no Cause, or "" if it has no kind.
func (r DecisionReason) kind() ErrorKind {
	switch r {
	case ReasonOtherProcesses, ReasonBrake, ReasonNetwork, ReasonHostRest, ReasonHostBusy, ReasonAddressBusy,
		ReasonRequestRate:
		return NotDue
	}
	return ""
}

// Err returns nil if the visit may proceed, otherwise an error from which DecisionOf returns d. Its
// text is formatted only when Error is called.
func (d Decision) Err() error {
	if d.Action == Proceed {
		return nil
	}
	return &decisionError{d}
}

// DecisionOf returns the Decision that err, or an error that it wraps, was made from. It returns false
// for other errors.
func DecisionOf(err error) (Decision, bool) {
	if e, ok := errors.AsType[*decisionError](err); ok {
		return e.decision, true
	}
	return Decision{}, false
}

// A decisionError is a Decision as an error.
type decisionError struct{ decision Decision }

// Is makes errors.Is(err, decorum.NotDue) true for reasons of that kind.
func (e *decisionError) Is(target error) bool {
	kind := e.decision.Reason.kind()
	return kind != "" && target == kind
}

// Unwrap returns the cause, which may be nil.
func (e *decisionError) Unwrap() error { return e.decision.Cause }

// Error returns the text of the cause or, without a cause, a text with the reason and the time at
// which it ends.
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
