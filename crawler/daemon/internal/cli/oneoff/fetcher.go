package oneoff

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A Fetcher fetches robots.txt files, and what they allow, one after the other,
// for a command that only asks. It goes through the same gate, with the same
// tickets, as a crawl: what it says is what a crawl would do. It is not safe for
// concurrent use.
type Fetcher struct {
	Gate             *gate.Gate // holds the robots.txt files that were fetched
	fetcher          crawler.Fetcher
	policy           politeness.Policy
	limiter          *politeness.Limiter
	hostVisitTimings map[string]hostVisitTiming
	lastResponse     *decorum.Response // to the last visit; nil if there was none
}

// A hostVisitTiming is what a Fetcher knows of a host.
type hostVisitTiming struct {
	politeness.NextVisit
	longestCrawlDelay time.Duration // the longest pause that its origins ask for
}

// NewFetcher returns a fetcher that works as the project says.
func NewFetcher(d *project.File, gateConfig gate.Config) (*Fetcher, error) {
	store := memory.New(memory.Config{})
	_, fetcher, err := engine.NewFetchers(&d.Project, nil, store, nil, nil)
	if err != nil {
		return nil, err
	}
	return &Fetcher{
		Gate:    gate.New(gateConfig, store),
		fetcher: fetcher, policy: d.PolitenessPolicy(), limiter: politeness.NewLimiter(politeness.LimiterConfig{}),
		hostVisitTimings: map[string]hostVisitTiming{},
	}, nil
}

// SetDue sets when a host is due that another crawl has visited, and e has not.
func (e *Fetcher) SetDue(host string, due time.Time) {
	e.hostVisitTimings[host] = hostVisitTiming{NextVisit: politeness.NextVisit{Due: due}}
}

// FetchRules returns the rules of an origin, and fetches its robots.txt unless it
// has already.
func (e *Fetcher) FetchRules(ctx context.Context, o decorum.Origin) (*robots.Rules, error) {
	if _, err := e.clearanceFor(ctx, o.RobotsURL()); err != nil {
		return nil, err
	}
	return e.Gate.Rules(ctx, o)
}

// clearanceFor clears the visit to u, and fetches its robots.txt first unless it has
// already.
func (e *Fetcher) clearanceFor(ctx context.Context, u decorum.URL) (gate.Clearance, error) {
	o := u.Origin()
	c, err := e.Gate.Check(ctx, time.Now(), u)
	for err == nil && c.IsForRobots() {
		var result gate.RecordFetchResult
		if result, err = e.visit(ctx, c); err != nil {
			break
		}
		if result.RedirectURL.IsZero() {
			c, err = e.Gate.Check(ctx, time.Now(), u)
		} else {
			c, err = e.Gate.CheckRobotsRedirect(ctx, time.Now(), result.RedirectURL, o)
		}
		if blocked := new(gate.RedirectDisallowedError); errors.As(err, &blocked) {
			// The redirects led to where robots may not go: as if there were no file.
			c, err = e.Gate.Check(ctx, time.Now(), u)
		}
	}
	if err != nil && !errors.Is(err, decorum.Disallowed) {
		err = fmt.Errorf("cannot have %s: %w", o.RobotsURL(), err)
	}
	return c, err
}

// ExplainVerdict says what the robots.txt of an origin says of u.
func (e *Fetcher) ExplainVerdict(ctx context.Context, o decorum.Origin, u decorum.URL) (gate.Explanation, error) {
	if _, err := e.FetchRules(ctx, o); err != nil {
		return gate.Explanation{}, err
	}
	return e.Gate.Explain(ctx, o, u)
}

// FetchRobotsBody returns the robots.txt of an origin as it came.
func (e *Fetcher) FetchRobotsBody(ctx context.Context, o decorum.Origin) ([]byte, error) {
	if _, err := e.FetchRules(ctx, o); err != nil {
		return nil, err
	}
	if e.lastResponse == nil || e.lastResponse.Status < 200 || e.lastResponse.Status > 299 {
		return nil, fmt.Errorf("there is no %s", o.RobotsURL())
	}
	return e.lastResponse.Body, nil
}

// FetchURL fetches what is at u, if its robots.txt allows it.
func (e *Fetcher) FetchURL(ctx context.Context, u decorum.URL) (*decorum.Response, error) {
	c, err := e.clearanceFor(ctx, u)
	if err != nil {
		return nil, err
	}
	_, err = e.visit(ctx, c)
	return e.lastResponse, err
}

// visit makes the visit that c clears when its host is due. What came of a
// robots.txt, or where that was redirected to, is learnt.
func (e *Fetcher) visit(ctx context.Context, c gate.Clearance) (result gate.RecordFetchResult, err error) {
	host := c.URL().Origin().Host()
	due := e.hostVisitTimings[host].Due
	if err := e.waitUntilDue(ctx, host, due); err != nil {
		e.Gate.CancelFetch(c) // if it is for a robots.txt: it is not being fetched
		return result, err
	}
	permit, d := e.limiter.Reserve(time.Now(), host, politeness.PermitRequest{NotBefore: due})
	if d.Action != decorum.Proceed {
		return result, d.Err()
	}
	ticket, err := crawler.NewTicket(c, permit)
	if err != nil {
		return result, err
	}
	visit := politeness.FinishedVisit{Start: time.Now()}
	e.lastResponse, err = e.fetcher.Fetch(ctx, ticket)
	visit.End = time.Now()
	if c.IsForRobots() {
		result, err = e.Gate.RecordFetch(ctx, visit.End, c, e.lastResponse, err)
	}
	e.setNextVisit(ctx, c.URL().Origin(), visit)
	return result, err
}

// setNextVisit has the host of an origin rest after a visit, for as long as the answer
// and the rules now known ask for.
func (e *Fetcher) setNextVisit(ctx context.Context, o decorum.Origin, visit politeness.FinishedVisit) {
	host := e.hostVisitTimings[o.Host()]
	if crawlDelay, _, err := e.Gate.DelayAndNextAllowedTime(ctx, o, visit.End); err == nil {
		host.longestCrawlDelay = max(host.longestCrawlDelay, crawlDelay)
	}
	visit.Host, visit.CrawlDelay, visit.ConsecutiveFailures = o.Host(), host.longestCrawlDelay, host.ConsecutiveFailures
	if e.lastResponse != nil {
		visit.Status = e.lastResponse.Status
		visit.RetryAfter = e.lastResponse.RetryAfter(visit.End)
	}
	host.NextVisit = e.policy.NextVisit(visit)
	e.limiter.SetNextVisitAndCountBytes(o.Host(), host.NextVisit, 0)
	e.hostVisitTimings[o.Host()] = host
}

// waitUntilDue waits until a host is due. Nobody sits through more than the longest
// Crawl-delay that a crawl waits for.
func (e *Fetcher) waitUntilDue(ctx context.Context, host string, due time.Time) error {
	if maxWait := e.policy.WithDefaults().MaxCrawlDelay; time.Until(due) > maxWait {
		return fmt.Errorf("%s is not to be visited before %s", host, due.Format(time.RFC3339))
	}
	wait := time.NewTimer(time.Until(due)) // there is one visit at a time here, so no other is kept waiting
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}
