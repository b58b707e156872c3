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

// An OnDemandCrawl makes visits that somebody waits for, such as a command that asks what a
// robots.txt says. Each goes through the steps of a scheduled visit: it is queued in a store in
// memory, leased from it when its host is due, and taken through the pipeline by Crawler.Step. The
// clocks of the hosts are those of that store and of the Crawler's Limiter.
//
// A visit on demand is made once, and leads to no other but those to the robots.txt, and to where
// that is redirected: no link, redirect or sitemap is followed, and no tdmrep.json is asked for.
//
// The methods must not be called at the same time.
type OnDemandCrawl struct {
	crawler *Crawler
	store   *memory.Store // empty between calls, but for the states of hosts and the notes

	queuedOrigins []decorum.Origin // whose URLs the call has queued
	visit         *Visit           // that the last step made; nil: none
	decision      decorum.Decision // why it made none

	unsentRobots map[decorum.Origin]unsentRobotsError // whose robots.txt was not asked for, and is not for now
}

// An unsentRobotsError says why no request for a robots.txt was sent. The failure is on this side,
// so that the gate is not told. The origin is set aside, until it is looked at again.
type unsentRobotsError struct {
	err   error
	until time.Time
}

func (e *unsentRobotsError) Error() string {
	return fmt.Sprintf("robots.txt: %v; closed until %s", e.err, e.until.UTC().Format(time.RFC3339))
}

func (e *unsentRobotsError) Unwrap() error { return e.err }

// onDemandLeaseTTL is how long a visit on demand may take. Nobody renews its lease, and nobody else
// could get it.
const onDemandLeaseTTL = 365 * 24 * time.Hour

// NewOnDemandCrawl returns one that makes visits by the Gate, Policy, Limiter and Fetcher of c, and
// by what else it has. It sets the Frontier, Handler and Hooks of c, and the Settings that make
// further visits. From then on c is for the OnDemandCrawl alone. The error is that of c.Validate.
func NewOnDemandCrawl(c *Crawler) (*OnDemandCrawl, error) {
	d := &OnDemandCrawl{
		crawler: c, store: memory.New(memory.Config{}), unsentRobots: map[decorum.Origin]unsentRobotsError{},
	}
	c.Frontier = frontier.New(d.store, frontier.Config{
		Budget: c.Limiter, LeaseTTL: onDemandLeaseTTL, Now: c.Now,
		OnNewURLQueued: func(e storage.Entry) { d.queuedOrigins = append(d.queuedOrigins, e.URL.Origin()) },
	})
	if c.Now == nil {
		c.Now = time.Now // a crawl that is given a clock waits for no other visit to tell whether the network failed
	}
	c.Handler = func(context.Context, *Visit) ([]LinkToVisit, error) { return nil, nil }
	c.Hooks = Hooks{
		VisitRefused: func(_ storage.Lease, decision decorum.Decision) { d.decision = decision },
		Visited:      func(v *Visit) { d.visit = v },
	}
	c.Settings.Workers, c.Settings.MaxAttempts = 1, 1
	c.Settings.NoSitemaps, c.Settings.Revisit = true, frontier.RevisitPolicy{}
	return d, c.Prepare()
}

// Gate returns the gate, which keeps the robots.txt files that were fetched.
func (d *OnDemandCrawl) Gate() *gate.Gate { return d.crawler.Gate }

// PostponeHost lets a host rest until due, because of a visit that another crawl has made.
func (d *OnDemandCrawl) PostponeHost(host string, due time.Time) {
	d.crawler.Limiter.PostponeHost(d.crawler.now(), host, time.Time{}, due)
}

// Visit makes one visit to u when its host is due, and returns it, whatever its status. Its
// robots.txt is fetched first, unless rules are in force. Its tdmrep.json is not, even if the Gate has
// a purpose of which that speaks. The error is of Kind Disallowed, with a
// *gate.Refusal, if they disallow u; a *HostNotDueError if a host is not due for longer than
// Policy.MaxCrawlDelay; the cause of ctx if that is done; or says why no whole answer came.
func (d *OnDemandCrawl) Visit(ctx context.Context, u decorum.URL) (*Visit, error) {
	v, err := d.visitEntry(ctx, storage.Entry{URL: u, UncleanedURL: u, UseUncleanedURL: true, Source: storage.SourceSeed})
	if err == nil && v.Response == nil {
		return nil, v.Err
	}
	return v, err
}

// FetchRobots has the robots.txt of an origin fetched, unless rules are in force. It returns the
// last visit that this took, for each redirect is one of its own; nil if it took none. The error is
// that of Visit, or says why there are no rules.
func (d *OnDemandCrawl) FetchRobots(ctx context.Context, o decorum.Origin) (*Visit, error) {
	return d.visitEntry(ctx, storage.Entry{URL: o.RobotsURL(), Source: storage.SourcePrerequisite})
}

// visitEntry queues e, and takes steps until its visit is made. An e for a robots.txt itself is
// never visited: see RobotsRefresh. The last visit is returned.
func (d *OnDemandCrawl) visitEntry(ctx context.Context, e storage.Entry) (last *Visit, err error) {
	o, isForRobots := e.URL.Origin(), e.Source == storage.SourcePrerequisite
	// Have no tdmrep.json asked for.
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
		// What is refused need not wait for its host to be due.
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
			return nil, fmt.Errorf("cannot have %s: %w", o.RobotsURL(), err)
		case d.visit != nil && d.visit.Kind.IsPage():
			return d.visit, nil
		}
	}
}

// forgetQueuedURLs leaves nothing queued that nobody waits for any more: what was not visited, where
// it redirected to, and the redirect of o's robots.txt; and no origin put off: the next call finds
// out anew whether it must wait.
func (d *OnDemandCrawl) forgetQueuedURLs(ctx context.Context, o decorum.Origin) (err error) {
	for _, queued := range d.queuedOrigins {
		err = errors.Join(err, d.store.ForgetOriginURLs(ctx, queued), d.store.Hold(ctx, queued, time.Time{}, false))
	}
	return errors.Join(err, d.store.SetNote(ctx, o, robotsRedirectNote, nil))
}

// originToWaitFor returns the origin to which the next visit goes: o, or where its robots.txt is
// redirected to, as the error of the gate says.
func originToWaitFor(o decorum.Origin, err error) decorum.Origin {
	if postponed, ok := errors.AsType[*gate.OriginPostponedError](err); ok && !postponed.RedirectURL.IsZero() {
		return postponed.RedirectURL.Origin()
	}
	return o
}

// step takes the next URL through the pipeline, and returns the visit that was made, last if none
// was. next is the origin whose URL that is. An error says that there is nothing more to wait for.
func (d *OnDemandCrawl) step(ctx context.Context, next decorum.Origin, last *Visit) (*Visit, error) {
	d.visit, d.decision = nil, decorum.Decision{}
	if err := d.checkDue(ctx, next); err != nil {
		return nil, err
	}
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

// isWorthWaiting reports whether a URL may be visited when what keeps it from being visited is over,
// which does not take long or is found out by Peek and checkDue. What follows from a redirect of a
// robots.txt that is given up is found out likewise.
func isWorthWaiting(d decorum.Decision) bool {
	switch d.Reason {
	case decorum.ReasonHostRest, decorum.ReasonHostBusy, decorum.ReasonAddressBusy, decorum.ReasonRequestRate,
		decorum.ReasonOtherProcesses, decorum.ReasonBrake, decorum.ReasonNetwork, decorum.ReasonBodyMemory,
		decorum.ReasonRobotsPending, decorum.ReasonDropped, decorum.ReasonRobotsRedirect:
		return true
	}
	return d.Action == decorum.Proceed
}

// isLongBrake reports whether a brake stops the host, or lets it be visited later than anybody waits
// for. The store puts its origin off for a shorter time, after which it is asked again.
func (d *OnDemandCrawl) isLongBrake(decision decorum.Decision) bool {
	return decision.Reason == decorum.ReasonBrake &&
		(decision.Action == decorum.Suspend || decision.Until.Sub(d.crawler.now()) > d.maxWait())
}

// maxWait is how long a visit waits for its host at most.
func (d *OnDemandCrawl) maxWait() time.Duration { return d.crawler.Policy.WithDefaults().MaxCrawlDelay }

// A HostNotDueError is the error of a visit on demand to a host that is not due for longer than
// anybody should wait.
type HostNotDueError struct {
	Host string
	Due  time.Time
}

// Is makes errors.Is(err, decorum.NotDue) true.
func (e *HostNotDueError) Is(target error) bool { return target == decorum.NotDue }

// Error says when it is due.
func (e *HostNotDueError) Error() string {
	return fmt.Sprintf("%s is not to be visited before %s", e.Host, e.Due.Format(time.RFC3339))
}

// checkDue returns a *HostNotDueError if the host of o is not due for longer than anybody waits.
func (d *OnDemandCrawl) checkDue(ctx context.Context, o decorum.Origin) error {
	err := d.newHostNotDueError(ctx, o)
	if e, ok := errors.AsType[*HostNotDueError](err); ok && e.Due.Sub(d.crawler.now()) <= d.maxWait() {
		return nil
	}
	return err
}

// newHostNotDueError returns one that says when the store hands out URLs of o again.
func (d *OnDemandCrawl) newHostNotDueError(ctx context.Context, o decorum.Origin) error {
	info, _, err := d.store.Origin(ctx, o)
	if err != nil {
		return err
	}
	return &HostNotDueError{o.Host(), timecmp.Later(info.HostState.Due, info.HeldUntil)}
}

// whyUnsent returns why the robots.txt that u needs is not asked for now, for a reason of our own.
func (d *OnDemandCrawl) whyUnsent(u decorum.URL) error {
	e, ok := d.unsentRobots[u.Origin()]
	if !ok || !d.crawler.now().Before(e.until) {
		delete(d.unsentRobots, u.Origin())
		return nil
	}
	return &decorum.Error{Op: "robots", URL: u.String(), Kind: decorum.Unreachable, Err: &e}
}
