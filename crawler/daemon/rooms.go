package daemon

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
)

// A ground is what a crawl stands on: what outlives one setting of its project.
type ground struct {
	files     stores
	out       *output
	archive   *archive // nil: none
	handlers  Handlers
	hooks     crawler.Hooks
	log       *slog.Logger
	restarted time.Time // when an earlier run was gone on with; zero if the crawl begins
	waits     bool      // for revisits and dormant origins, as a daemon does
	brisk     bool      // retry soon: see hurry
}

// Rooms are the house, put together for a project.
type rooms struct {
	project  Project
	frontier *frontier.Frontier
	crawler  *crawler.Crawler
	outside  *outside
}

// furnish puts the rooms together for a project that has been checked.
func (g ground) furnish(p Project, roots []decorum.URL) (*rooms, error) {
	scope, err := p.scope()
	if err != nil {
		return nil, err
	}
	gate, err := p.gateConfig()
	if err != nil {
		return nil, err
	}
	params, err := p.params()
	if err != nil {
		return nil, err
	}
	settings, err := p.settings()
	if err != nil {
		return nil, err
	}
	policy := p.policy()
	if g.brisk {
		hurry(&gate, &policy)
	}
	web, err := p.fetcher(g.files.frontier)
	if err != nil {
		return nil, err
	}
	fetcher, err := p.withFTP(web)
	if err != nil {
		return nil, err
	}
	r := &rooms{project: p, outside: &outside{log: g.log}}
	limits, asked := politeness.NewLimits(p.limits(g.restarted)), robots.NewGate(gate, g.files.robots)
	r.frontier = frontier.New(g.files.frontier, frontier.Config{
		Scope: frontier.NewScope(scope, roots), Params: params, Clean: asked.Clean, Budget: limits,
		Wait: g.waits, Longest: longestWait(policy), Refused: r.outside.refuse,
	})
	r.crawler = &crawler.Crawler{
		Frontier: r.frontier, Gate: asked, Policy: policy, Limits: limits,
		Fetcher: fetcher, Recorder: g.out, Hooks: g.hooks,
		Settings: settings, Log: g.log,
	}
	g.handlers.attach(r.crawler, p, web)
	if g.archive != nil {
		g.archive.notes, g.archive.revisits = r.frontier, settings.Revisit.Wanted()
		r.crawler.Archive = g.archive
	}
	return r, nil
}

// reopen offers again what an earlier run, which may have been set otherwise, has
// put away.
func (r *rooms) reopen(ctx context.Context) error {
	return r.frontier.Reopen(ctx, r.crawler.StillAside)
}

// plant discovers the project's seeds.
func (r *rooms) plant(ctx context.Context) error { return r.project.plant(ctx, r.frontier) }

// takeOver makes a crawl that goes on the project's: parked URLs are judged
// again if it judges otherwise than it did before. The project is kept after
// that, so that a kill in between repeats it.
func (r *rooms) takeOver(ctx context.Context, dir stateDir, before *draft) error {
	if before == nil || !before.judgesAs(r.project) {
		if err := errors.Join(r.frontier.ReviveAll(ctx), r.frontier.Flush(ctx)); err != nil {
			return err
		}
	}
	return dir.save(r.project)
}
