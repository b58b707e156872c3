package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// An errand fetches robots.txt files one after the other, for a command that
// only asks. It goes through the same gate, with the same tickets, as a crawl:
// what it says is what a crawl would do. It is not safe for concurrent use.
type errand struct {
	gate    *robots.Gate
	fetcher crawler.Fetcher
	policy  politeness.Policy
	limits  *politeness.Limits
	due     map[string]time.Time // by host
	last    *decorum.Response    // to the last visit; nil if there was none
}

func newErrand(q robotsCheck, agent robots.Agent, dialect robots.Dialect) (*errand, error) {
	d := newDraft()
	d.Agent.Contact, d.Seeds = q.contact, []string{"https://" + modulePath}
	d.Fetch.AllowPrivate, d.Fetch.ConnectTo = q.allowPrivate, q.connectTo
	d.flags["agent.contact"], d.flags["fetch.connect_to"] = "--contact", "--connect-to"
	if err := d.check(); err != nil {
		return nil, err
	}
	cfg, err := d.fetchConfig()
	if err != nil {
		return nil, err
	}
	fetcher, err := collyfetch.New(cfg)
	if err != nil {
		return nil, err
	}
	return &errand{
		gate: robots.NewGate(robots.GateConfig{Agent: agent, Dialect: dialect, Session: time.Now()},
			storage.NewMemory(storage.Config{})),
		fetcher: fetcher, policy: d.policy(), limits: politeness.NewLimits(politeness.LimitsConfig{}),
		due: map[string]time.Time{},
	}, nil
}

// rules returns the rules of an origin, and fetches its robots.txt unless it
// has already.
func (e *errand) rules(ctx context.Context, o decorum.Origin) (*robots.Rules, error) {
	c, err := e.gate.Check(ctx, time.Now(), o.RobotsURL())
	for err == nil && c.ForRobots() {
		var lesson robots.Lesson
		if lesson, err = e.visit(ctx, c); err != nil {
			break
		}
		if lesson.Hop.IsZero() {
			c, err = e.gate.Check(ctx, time.Now(), o.RobotsURL())
		} else {
			c, err = e.gate.CheckHop(ctx, time.Now(), lesson.Hop, o)
		}
	}
	if end := new(robots.ChainEnd); errors.As(err, &end) {
		err = nil // the redirects led to where robots may not go: as if there were no file
	}
	if err != nil {
		return nil, fmt.Errorf("cannot have %s: %w", o.RobotsURL(), err)
	}
	return e.gate.Rules(ctx, o)
}

// explain says what the robots.txt of an origin says of u.
func (e *errand) explain(ctx context.Context, o decorum.Origin, u decorum.URL) (robots.Explanation, error) {
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
func (e *errand) body(ctx context.Context, o decorum.Origin) ([]byte, error) {
	if _, err := e.rules(ctx, o); err != nil {
		return nil, err
	}
	if e.last == nil || e.last.Status < 200 || e.last.Status > 299 {
		return nil, fmt.Errorf("there is no %s", o.RobotsURL())
	}
	return e.last.Body, nil
}

// visit fetches one robots.txt, or what it was redirected to, when its host is
// due.
func (e *errand) visit(ctx context.Context, c robots.Clearance) (robots.Lesson, error) {
	host := c.URL().Origin().Host()
	if err := sleepUntil(ctx, e.due[host]); err != nil {
		return robots.Lesson{}, err
	}
	permit, err := e.limits.Admit(time.Now(), host, e.due[host], 1)
	if err != nil {
		return robots.Lesson{}, err
	}
	ticket, err := crawler.NewTicket(c, permit)
	if err != nil {
		return robots.Lesson{}, err
	}
	visit := politeness.Visit{Start: time.Now()}
	res, fetchErr := e.fetcher.Fetch(ctx, ticket)
	visit.End = time.Now()
	e.last = res
	if res != nil {
		visit.Status = res.Status
	}
	rest := e.policy.Next(visit)
	e.limits.Ended(host, rest, 0)
	e.due[host] = rest.Due
	return e.gate.Learn(ctx, visit.End, c, res, fetchErr)
}

// sleepUntil waits for a moment. There is one visit at a time here, so nobody
// else is kept waiting.
func sleepUntil(ctx context.Context, due time.Time) error {
	t := time.NewTimer(time.Until(due))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
