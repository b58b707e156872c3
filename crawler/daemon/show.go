package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/storage"
)

// demand has the project be in another state, for good. What is so already stays
// as it is. A project that is to pause or to stop does, though that could not be
// kept: the error says that it may not survive the daemon.
func (r *runner) demand(s api.ProjectState) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.orders
	if why := o.may(); why != "" && s == api.StateRunning {
		return api.Conflict("%s cannot start: %s", r.name, why)
	}
	if s == api.StatePaused && o.wish.State == api.StateStopped {
		return api.Conflict("%s is stopped: only what runs can pause", r.name)
	}
	isSaved := r.wishes.of(r.name).State == s
	if isSaved && o.wish.State == s && (s != api.StateRunning || r.interrupt != nil) {
		return nil
	}
	err := r.wishes.want(r.name, wish{State: s})
	switch {
	case err != nil && s == api.StateRunning:
		return err
	case err != nil:
		err = fmt.Errorf("%s is %s, which may not survive the daemon: %w", r.name, s, err)
	}
	r.command(func(o *orders) { o.wish = wish{State: s} })
	if s == api.StateRunning {
		r.meter.renew()
		r.renews = true
		r.enter(s, "")
	}
	return err
}

// currentState returns what the project does, and why.
func (r *runner) currentState() (api.ProjectState, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state, r.why
}

// show returns the project as the API shows it.
func (r *runner) show(ctx context.Context) api.Project {
	r.mu.Lock()
	p := api.Project{Name: r.name, State: r.state, StateReason: r.why, FileError: r.orders.fault, StateSince: r.since}
	ed := r.orders.edition
	r.mu.Unlock()
	if ed != nil {
		p.FileLoadedAt, p.Workers, p.HandlerName = ed.loaded.UTC(), ed.project.Limits.Workers, ed.project.Handler
		p.UserAgent = ed.project.userAgent()
	}
	p.Stats, p.RecentThroughput = r.meter.read(), r.meter.rate()
	p.MachinePauseReason, p.LoadConcurrencyLimit = r.meter.machine()
	if p.MachinePauseReason != "" && p.StateReason == "" {
		p.StateReason = "visits are paused, and no host is charged: " + p.MachinePauseReason
	}
	if lost := r.lost(); lost != nil && p.StateReason == "" {
		p.StateReason = lost.Error()
	}
	if short := r.shortage.why(); short != nil && p.StateReason == "" {
		p.StateReason = short.Error()
	}
	c := r.vault.latest()
	if !r.isRemote() { // else sample asks, so that nobody waits for servers
		var err error
		if c, err = r.vault.count(ctx); err != nil {
			r.app.log.Debug("what the project holds cannot be told", "error", err) // it has failed, and says so
			return p
		}
	}
	p.FrontierCounts = api.FrontierCounts{
		QueuedHosts: c.counts.Hosts, DueHosts: c.counts.Due, QueuedURLs: c.counts.Queued, LeasedURLs: c.counts.Leased,
		ParkedURLs: c.counts.Parked, AwaitingRevisit: c.counts.Resting, SuspendedURLs: c.counts.Dormant, SeenURLs: c.counts.Seen,
	}
	p.LargestDelayShortfall = api.Milliseconds(c.shortfall)
	return p
}

// sample takes a sample of what the project does, if it does anything.
func (r *runner) sample(ctx context.Context, now time.Time) {
	if state, _ := r.currentState(); state == api.StateStopped || state == api.StateFailed {
		return
	}
	c, err := r.vault.count(ctx)
	if err != nil {
		return // show tells
	}
	if r.isRemote() && c.counts.Queued > 0 {
		r.wakeUp()
	}
	s := r.meter.sample(now, c.counts.Queued)
	r.hub.tell(api.Event{At: s.At, Type: "sample", Project: r.name, Sample: &s})
}

// halt breaks off what the project has in hand.
func (r *runner) halt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.engine != nil && r.engine.crawler != nil {
		r.engine.crawler.Halt()
	}
}

// visits returns the visits in hand: those whose request was made.
func (r *runner) visits() []api.ActiveVisit {
	r.mu.Lock()
	var crawls *crawler.Crawler
	if r.engine != nil && r.interrupt != nil {
		crawls = r.engine.crawler
	}
	r.mu.Unlock()
	visits := []api.ActiveVisit{}
	if crawls == nil {
		return visits
	}
	for _, h := range crawls.ActiveVisits() {
		if !h.RequestedAt.IsZero() {
			visits = append(visits, api.ActiveVisit{URL: h.URL.String(), Host: h.Host, RequestedAt: h.RequestedAt.UTC(), Kind: kindOf(h)})
		}
	}
	return visits
}

// kindOf says what a visit is to.
func kindOf(h crawler.ActiveVisit) string {
	switch {
	case h.ForRobots:
		return "robots"
	case h.Source == storage.Robots:
		return "sitemap"
	}
	return "page"
}
