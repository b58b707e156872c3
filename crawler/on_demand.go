package crawler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// An OnDemandCrawl makes visits for a caller that waits for them, such as a command that shows a
// robots.txt. Each visit goes through the steps of a scheduled one: the URL is queued in a store in
// memory, leased when its host is due, and taken through the pipeline by Crawler.Step. The clocks
// of the hosts are those of that store and of the Crawler's Limiter.
//
// A visit on demand is made once. Besides it, the crawl visits only the robots.txt that it needs,
// and the targets of that file's redirects. It follows no link, redirect or sitemap, and fetches no
// tdmrep.json.
//
// Do not call its methods concurrently.
type OnDemandCrawl struct {
	crawler *Crawler
	store   *memory.Store // between calls it holds only hosts' states and notes

	queuedOrigins []decorum.Origin // origins whose URLs the current call has queued
	visit         *Visit           // the visit of the last step; nil: none
	decision      decorum.Decision // why the last step made no visit

	// unsentRobots has the origins whose robots.txt could not be requested, until they are tried
	// again.
	unsentRobots map[decorum.Origin]unsentRobotsError
}

// An unsentRobotsError says why no request for a robots.txt was sent. The failure is on this side,
// so the gate does not learn of it; the origin is suspended until a time instead.
type unsentRobotsError struct {
	err   error
	until time.Time
}

// Error returns the cause, and when the origin is tried again.
func (e *unsentRobotsError) Error() string {
	return fmt.Sprintf("robots.txt: %v; closed until %s", e.err, e.until.UTC().Format(time.RFC3339))
}

// Unwrap returns the cause.
func (e *unsentRobotsError) Unwrap() error { return e.err }

// onDemandLeaseTTL is how long a visit on demand may take. Its lease is not renewed, and no other
// process competes for it.
const onDemandLeaseTTL = 365 * 24 * time.Hour

// NewOnDemandCrawl returns an OnDemandCrawl that makes visits with the Gate, Policy, Limiter,
// Fetcher and further parts of c. It sets the Frontier, Handler and Hooks of c, and the Settings
// that would lead to further visits; do not use c for anything else afterwards. The error is that
// of c.Validate.
func NewOnDemandCrawl(c *Crawler) (*OnDemandCrawl, error) {
	d := &OnDemandCrawl{
		crawler: c, store: memory.New(memory.Config{}), unsentRobots: map[decorum.Origin]unsentRobotsError{},
	}
	c.Frontier = frontier.New(d.store, frontier.Config{
		Budget: c.Limiter, LeaseTTL: onDemandLeaseTTL, Now: c.Now,
		OnNewURLQueued: func(e storage.Entry) { d.queuedOrigins = append(d.queuedOrigins, e.URL.Origin()) },
	})
	if c.Now == nil {
		// With a clock of its own, the crawl does not wait for other visits to show whether the
		// network failed.
		c.Now = time.Now
	}
	c.Handler = func(context.Context, *Visit) ([]LinkToVisit, error) { return nil, nil }
	c.Hooks = Hooks{
		VisitRefused: func(_ storage.Lease, decision decorum.Decision) { d.decision = decision },
		Visited:      func(v *Visit) { d.visit = v },
	}
	c.Settings.Workers, c.Settings.MaxAttempts = 1, 1
	c.Settings.NoSitemaps, c.Settings.Revisit = true, frontier.RevisitPolicy{}
	c.evaluatesForOthers = true
	return d, c.Prepare()
}

// Gate returns the gate, which keeps the robots.txt files that were fetched.
func (d *OnDemandCrawl) Gate() *gate.Gate { return d.crawler.Gate }

// PostponeHost makes host rest until due, because of a visit that another crawl made.
func (d *OnDemandCrawl) PostponeHost(host string, due time.Time) {
	d.crawler.Limiter.PostponeHost(d.crawler.now(), host, time.Time{}, due)
}

// Visit makes one visit to u when its host is due, and returns it, whatever its status. It fetches
// robots.txt first, unless rules are in force, but never tdmrep.json, even if the Gate has a
// purpose that the file can reserve.
//
// The error is of Kind Disallowed, with a *gate.Refusal, if the rules disallow u; a
// *HostNotDueError if a host is not due for longer than Policy.MaxCrawlDelay; the cause of ctx if
// ctx is done; otherwise it says why no whole answer came.
func (d *OnDemandCrawl) Visit(ctx context.Context, u decorum.URL) (*Visit, error) {
	v, err := d.visitEntry(ctx, storage.Entry{URL: u, UncleanedURL: u, UseUncleanedURL: true,
		Source: storage.SourceSeed})
	if err == nil && v.Response == nil {
		return nil, v.Err
	}
	return v, err
}

// FetchRobots fetches the robots.txt of an origin, unless rules are in force. It returns the last
// visit that this took, counting each redirect as a visit; nil if it took none. The error is that
// of Visit, or says why there are no rules.
func (d *OnDemandCrawl) FetchRobots(ctx context.Context, o decorum.Origin) (*Visit, error) {
	return d.visitEntry(ctx, storage.Entry{URL: o.RobotsURL(), Source: storage.SourcePrerequisite})
}

// visitEntry queues e and takes steps until its visit is made. It returns the last visit. A
// robots.txt that e itself names is a RobotsRefresh, which makes no visit.
func (d *OnDemandCrawl) visitEntry(ctx context.Context, e storage.Entry) (last *Visit, err error) {
	o, isForRobots := e.URL.Origin(), e.Source == storage.SourcePrerequisite
	// A fresh, empty record keeps the crawl from fetching tdmrep.json.
	d.crawler.prerequisites.tdmrepCache.put(o, &CachedTDMRep{RefetchAt: d.crawler.now().Add(onDemandLeaseTTL)})
	if _, err := d.store.Add(ctx, []storage.Entry{e}, 0); err != nil {
		return nil, err
	}
	d.queuedOrigins = append(d.queuedOrigins[:0], o)
	defer func() { err = cmp.Or(err, d.forgetQueuedURLs(context.WithoutCancel(ctx), o)) }()
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		// A disallowed URL need not wait until its host is due.
		hasRules, err := d.crawler.Gate.Peek(ctx, d.crawler.now(), e.URL)
		switch {
		case errors.Is(err, decorum.Disallowed):
			return nil, err
		case err == nil && hasRules && isForRobots:
			return last, nil
		}
		if err == nil && !hasRules {
			err = d.whyUnsent(e.URL)
		}
		if err == nil || errors.Is(err, decorum.Pending) {
			last, err = d.step(ctx, originToWaitFor(o, err), last)
		}
		switch {
		case err != nil && hasRules:
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("cannot fetch %s: %w", o.RobotsURL(), err)
		case d.visit != nil && d.visit.Kind.IsPage():
			return d.visit, nil
		}
	}
}

// forgetQueuedURLs removes what the call has queued and not visited, such as redirect targets, and
// releases the holds of these origins and the note of o's robots.txt redirect. The next call
// decides again whether it must wait.
func (d *OnDemandCrawl) forgetQueuedURLs(ctx context.Context, o decorum.Origin) (err error) {
	for _, queued := range d.queuedOrigins {
		err = errors.Join(err, d.store.ForgetOriginURLs(ctx, queued), d.store.Hold(ctx, queued, time.Time{}, false))
	}
	return errors.Join(err, d.store.SetNote(ctx, o, robotsRedirectNote, nil))
}

// originToWaitFor returns the origin of the next visit: o, or the target of its robots.txt's
// redirect, which err of the gate names.
func originToWaitFor(o decorum.Origin, err error) decorum.Origin {
	if postponed, ok := errors.AsType[*gate.OriginPostponedError](err); ok && !postponed.RedirectURL.IsZero() {
		return postponed.RedirectURL.Origin()
	}
	return o
}

// step takes the next URL, which is one of origin next, through the pipeline. It returns the visit
// that was made, or last if none was. An error means that waiting longer is useless.
func (d *OnDemandCrawl) step(ctx context.Context, next decorum.Origin, last *Visit) (*Visit, error) {
	d.visit, d.decision = nil, decorum.Decision{}
	if err := d.checkDue(ctx, next); err != nil {
		return nil, err
	}
	// Make one step, then decide whether a URL that was not visited is worth another.
	err := d.crawler.Step(ctx)
	v := d.visit
	switch {
	case errors.Is(err, frontier.ErrOnlySuspendedLeft):
		return nil, d.newHostNotDueError(ctx, next)
	case err != nil:
		return nil, err
	case v == nil && (!isWorthWaiting(d.decision) || d.isLongBrake(d.decision)):
		return nil, d.decision.Err()
	case v == nil:
		return last, nil
	case v.Response == nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case v.Kind == RobotsVisit && v.wasNeverSent():
		d.unsentRobots[v.URL().Origin()] = unsentRobotsError{v.Err, v.End.Add(suspendDuration)}
		return v, nil
	case v.interrupted:
		return nil, v.Err
	}
	return v, nil
}

// isWorthWaiting reports whether the visit may be possible soon: what prevents it is short, or Peek
// and checkDue find out how long it lasts. They also find out what follows a robots.txt redirect
// that was given up.
func isWorthWaiting(d decorum.Decision) bool {
	switch d.Reason {
	case decorum.ReasonHostRest, decorum.ReasonHostBusy, decorum.ReasonAddressBusy, decorum.ReasonRequestRate,
		decorum.ReasonOtherProcesses, decorum.ReasonBrake, decorum.ReasonNetwork, decorum.ReasonBodyMemory,
		decorum.ReasonRobotsPending, decorum.ReasonDropped, decorum.ReasonRobotsRedirect:
		return true
	}
	return d.Action == decorum.Proceed
}

// isLongBrake reports whether a brake stops the host, or delays it for longer than maxWait. The
// store holds the origin for a shorter time, after which it is checked again.
func (d *OnDemandCrawl) isLongBrake(decision decorum.Decision) bool {
	return decision.Reason == decorum.ReasonBrake &&
		(decision.Action == decorum.Suspend || decision.Until.Sub(d.crawler.now()) > d.maxWait())
}

// maxWait is the longest time that a visit waits for its host.
func (d *OnDemandCrawl) maxWait() time.Duration { return d.crawler.Policy.WithDefaults().MaxCrawlDelay }

// A HostNotDueError is the error of a visit on demand whose host is not due for longer than
// Policy.MaxCrawlDelay.
type HostNotDueError struct {
	Host string    // the host name, without a port
	Due  time.Time // when the host is due
}

// Is makes errors.Is(err, decorum.NotDue) true.
func (e *HostNotDueError) Is(target error) bool { return target == decorum.NotDue }

// Error says when the host is due.
func (e *HostNotDueError) Error() string {
	return fmt.Sprintf("%s may not be visited before %s", e.Host, e.Due.Format(time.RFC3339))
}

// checkDue returns a *HostNotDueError if the host of o is not due for longer than maxWait.
func (d *OnDemandCrawl) checkDue(ctx context.Context, o decorum.Origin) error {
	err := d.newHostNotDueError(ctx, o)
	if e, ok := errors.AsType[*HostNotDueError](err); ok && e.Due.Sub(d.crawler.now()) <= d.maxWait() {
		return nil
	}
	return err
}

// newHostNotDueError returns the error that says when the store hands out URLs of o again.
func (d *OnDemandCrawl) newHostNotDueError(ctx context.Context, o decorum.Origin) error {
	info, _, err := d.store.Origin(ctx, o)
	if err != nil {
		return err
	}
	return &HostNotDueError{o.Host(), timecmp.Later(info.HostState.Due, info.HeldUntil)}
}

// whyUnsent returns why the robots.txt that u needs cannot be requested now; nil if it can.
func (d *OnDemandCrawl) whyUnsent(u decorum.URL) error {
	e, ok := d.unsentRobots[u.Origin()]
	if !ok || !d.crawler.now().Before(e.until) {
		delete(d.unsentRobots, u.Origin())
		return nil
	}
	return &decorum.Error{Op: "robots", URL: u.String(), Kind: decorum.Unreachable, Err: &e}
}
