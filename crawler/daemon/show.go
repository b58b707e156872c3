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
func (r *runner) demand(s api.State) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.orders
	if why := o.may(); why != "" && s == api.Running {
		return api.Conflict("%s cannot start: %s", r.name, why)
	}
	if s == api.Paused && o.wish.State == api.Stopped {
		return api.Conflict("%s is stopped: only what runs can pause", r.name)
	}
	isSaved := r.wishes.of(r.name).State == s
	if isSaved && o.wish.State == s && (s != api.Running || r.interrupt != nil) {
		return nil
	}
	err := r.wishes.want(r.name, wish{State: s})
	switch {
	case err != nil && s == api.Running:
		return err
	case err != nil:
		err = fmt.Errorf("%s is %s, which may not survive the daemon: %w", r.name, s, err)
	}
	r.command(func(o *orders) { o.wish = wish{State: s} })
	if s == api.Running {
		r.meter.renew()
		r.renews = true
		r.enter(s, "")
	}
	return err
}

// currentState returns what the project does, and why.
func (r *runner) currentState() (api.State, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state, r.why
}

// show returns the project as the API shows it.
func (r *runner) show(ctx context.Context) api.Project {
	r.mu.Lock()
	p := api.Project{Name: r.name, State: r.state, Why: r.why, FileError: r.orders.fault, Since: r.since}
	ed := r.orders.edition
	r.mu.Unlock()
	if ed != nil {
		p.Loaded, p.Workers, p.Handler = ed.loaded.UTC(), ed.project.Limits.Workers, ed.project.Handler
		p.UserAgent = ed.project.userAgent()
	}
	p.Stats, p.Rate = r.meter.read(), r.meter.rate()
	p.Paused, p.VisitLimit = r.meter.machine()
	if p.Paused != "" && p.Why == "" {
		p.Why = "visits are paused, and no host is charged: " + p.Paused
	}
	if lost := r.lost(); lost != nil && p.Why == "" {
		p.Why = lost.Error()
	}
	if short := r.shortage.why(); short != nil && p.Why == "" {
		p.Why = short.Error()
	}
	c := r.vault.latest()
	if !r.isRemote() { // else sample asks, so that nobody waits for servers
		var err error
		if c, err = r.vault.count(ctx); err != nil {
			r.app.log.Debug("what the project holds cannot be told", "error", err) // it has failed, and says so
			return p
		}
	}
	p.Counts = api.Counts{
		Hosts: c.counts.Hosts, Due: c.counts.Due, Queued: c.counts.Queued, Leased: c.counts.Leased,
		Parked: c.counts.Parked, Resting: c.counts.Resting, Dormant: c.counts.Dormant, Seen: c.counts.Seen,
	}
	p.Shortfall = api.Milliseconds(c.shortfall)
	return p
}

// sample takes a sample of what the project does, if it does anything.
func (r *runner) sample(ctx context.Context, now time.Time) {
	if state, _ := r.currentState(); state == api.Stopped || state == api.Failed {
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
func (r *runner) visits() []api.LiveVisit {
	r.mu.Lock()
	var crawls *crawler.Crawler
	if r.engine != nil && r.interrupt != nil {
		crawls = r.engine.crawler
	}
	r.mu.Unlock()
	visits := []api.LiveVisit{}
	if crawls == nil {
		return visits
	}
	for _, h := range crawls.InHand() {
		if !h.Started.IsZero() {
			visits = append(visits, api.LiveVisit{URL: h.URL.String(), Host: h.Host, Since: h.Started.UTC(), Kind: kindOf(h)})
		}
	}
	return visits
}

// kindOf says what a visit is to.
func kindOf(h crawler.Hand) string {
	switch {
	case h.Robots:
		return "robots"
	case h.Source == storage.Robots:
		return "sitemap"
	}
	return "page"
}
