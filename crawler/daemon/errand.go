package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// A politeFetcher fetches robots.txt files, and what they allow, one after the other,
// for a command that only asks. It goes through the same gate, with the same
// tickets, as a crawl: what it says is what a crawl would do. It is not safe for
// concurrent use.
type politeFetcher struct {
	gate    *robots.Gate
	fetcher crawler.Fetcher
	policy  politeness.Policy
	limits  *politeness.Limits
	hosts   map[string]acquaintance
	last    *decorum.Response // to the last visit; nil if there was none
}

// An acquaintance is what an errand knows of a host.
type acquaintance struct {
	politeness.Rest
	delay time.Duration // the longest pause that its origins ask for
}

func newPoliteFetcher(q robotsCheck, agent robots.Agent, dialect robots.Dialect) (*politeFetcher, error) {
	d := q.draft()
	if err := d.check(); err != nil {
		return nil, err
	}
	return d.newPoliteFetcher(robots.GateConfig{Agent: agent, Dialect: dialect, Session: time.Now()})
}

// draft returns a project of what the flags of a command that fetches say.
func (q robotsCheck) draft() *draft {
	d := newDraft()
	d.Agent.Contact, d.Seeds = q.contact, []string{"https://" + decorum.Module}
	d.Fetch.AllowPrivate, d.Fetch.ConnectTo = q.allowPrivate, q.connectTo
	d.flags["agent.contact"], d.flags["fetch.connect_to"] = "--contact", "--connect-to"
	return d
}

// newPoliteFetcher returns an errand that fetches as the project says.
func (d *draft) newPoliteFetcher(gate robots.GateConfig) (*politeFetcher, error) {
	store := storage.NewMemory(storage.Config{})
	bodies := bodymem.NewDefault()
	web, err := d.fetcher(nil, store, nil, bodies)
	if err != nil {
		return nil, err
	}
	fetcher, err := d.withFTP(web, bodies)
	if err != nil {
		return nil, err
	}
	return &politeFetcher{
		gate:    robots.NewGate(gate, store),
		fetcher: fetcher, policy: d.policy(), limits: politeness.NewLimits(politeness.LimitsConfig{}),
		hosts: map[string]acquaintance{},
	}, nil
}

// rules returns the rules of an origin, and fetches its robots.txt unless it
// has already.
func (e *politeFetcher) rules(ctx context.Context, o decorum.Origin) (*robots.Rules, error) {
	if _, err := e.clear(ctx, o.RobotsURL()); err != nil {
		return nil, err
	}
	return e.gate.Rules(ctx, o)
}

// clear clears the visit to u, and fetches its robots.txt first unless it has
// already.
func (e *politeFetcher) clear(ctx context.Context, u decorum.URL) (robots.Clearance, error) {
	o := u.Origin()
	c, err := e.gate.Check(ctx, time.Now(), u)
	for err == nil && c.ForRobots() {
		var lesson robots.Lesson
		if lesson, err = e.visit(ctx, c); err != nil {
			break
		}
		if lesson.Hop.IsZero() {
			c, err = e.gate.Check(ctx, time.Now(), u)
		} else {
			c, err = e.gate.CheckHop(ctx, time.Now(), lesson.Hop, o)
		}
		if end := new(robots.ChainEnd); errors.As(err, &end) {
			// The redirects led to where robots may not go: as if there were no file.
			c, err = e.gate.Check(ctx, time.Now(), u)
		}
	}
	if err != nil && !errors.Is(err, decorum.Disallowed) {
		err = fmt.Errorf("cannot have %s: %w", o.RobotsURL(), err)
	}
	return c, err
}

// explain says what the robots.txt of an origin says of u.
func (e *politeFetcher) explain(ctx context.Context, o decorum.Origin, u decorum.URL) (robots.Explanation, error) {
	rules, err := e.rules(ctx, o)
	if err != nil {
		return robots.Explanation{}, err
	}
	file, err := e.gate.Explain(ctx, o.RobotsURL())
	x := rules.Explain(u)
	x.SHA256 = file.SHA256
	return x, err
}

// body returns the robots.txt of an origin as it came.
func (e *politeFetcher) body(ctx context.Context, o decorum.Origin) ([]byte, error) {
	if _, err := e.rules(ctx, o); err != nil {
		return nil, err
	}
	if e.last == nil || e.last.Status < 200 || e.last.Status > 299 {
		return nil, fmt.Errorf("there is no %s", o.RobotsURL())
	}
	return e.last.Body, nil
}

// fetch fetches what is at u, if its robots.txt allows it.
func (e *politeFetcher) fetch(ctx context.Context, u decorum.URL) (*decorum.Response, error) {
	c, err := e.clear(ctx, u)
	if err != nil {
		return nil, err
	}
	_, err = e.visit(ctx, c)
	return e.last, err
}

// visit makes the visit that c clears when its host is due. What came of a
// robots.txt, or where that was redirected to, is learnt.
func (e *politeFetcher) visit(ctx context.Context, c robots.Clearance) (lesson robots.Lesson, err error) {
	host := c.URL().Origin().Host()
	due := e.hosts[host].Due
	if err := e.wait(ctx, host, due); err != nil {
		e.gate.Forget(c) // if it is for a robots.txt: it is not being fetched
		return lesson, err
	}
	permit, err := e.limits.Request(time.Now(), host, politeness.Wish{NotBefore: due})
	if err != nil {
		return lesson, err
	}
	ticket, err := crawler.NewTicket(c, permit)
	if err != nil {
		return lesson, err
	}
	visit := politeness.Visit{Start: time.Now()}
	e.last, err = e.fetcher.Fetch(ctx, ticket)
	visit.End = time.Now()
	if c.ForRobots() {
		lesson, err = e.gate.Learn(ctx, visit.End, c, e.last, err)
	}
	e.rest(ctx, c.URL().Origin(), visit)
	return lesson, err
}

// rest has the host of an origin rest after a visit, for as long as the answer
// and the rules now known ask for.
func (e *politeFetcher) rest(ctx context.Context, o decorum.Origin, visit politeness.Visit) {
	host := e.hosts[o.Host()]
	if pause, _, err := e.gate.Pace(ctx, o, visit.End); err == nil {
		host.delay = max(host.delay, pause)
	}
	visit.Host, visit.CrawlDelay, visit.Strikes = o.Host(), host.delay, host.Strikes
	if e.last != nil {
		visit.Status = e.last.Status
		visit.RetryAfter = politeness.ParseRetryAfter(e.last.Header.Get("Retry-After"), visit.End)
	}
	host.Rest = e.policy.Next(visit)
	e.limits.Ended(o.Host(), host.Rest, 0)
	e.hosts[o.Host()] = host
}

// wait waits until a host is due. Nobody sits through more than the longest
// Crawl-delay that a crawl waits for.
func (e *politeFetcher) wait(ctx context.Context, host string, due time.Time) error {
	if maxWait := e.policy.WithDefaults().MaxCrawlDelay; time.Until(due) > maxWait {
		return fmt.Errorf("%s is not to be visited before %s", host, due.Format(time.RFC3339))
	}
	return sleep(ctx, time.Until(due)) // there is one visit at a time here, so nobody else is kept waiting
}

// sleep waits, and returns the cause of ctx if that is done.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}
