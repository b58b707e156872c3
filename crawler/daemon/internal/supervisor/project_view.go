package supervisor

import (
	"context"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/storage"
)

// setDesiredState has the project be in another state, for good. What is so already stays
// as it is. A project that is to pause or to stop does, though that could not be
// kept: the error says that it may not survive the daemon.
func (r *projectRunner) setDesiredState(s api.ProjectState) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.command
	if reason := o.blockedReason(); reason != "" && s == api.StateRunning {
		return api.Conflict("%s cannot start: %s", r.name, reason)
	}
	if s == api.StatePaused && o.desired.State == api.StateStopped {
		return api.Conflict("%s is stopped: only what runs can pause", r.name)
	}
	isSaved := r.daemonStateStore.desiredState(r.name).State == s
	if isSaved && o.desired.State == s && (s != api.StateRunning || r.interruptRun != nil) {
		return nil
	}
	err := r.daemonStateStore.setDesiredState(r.name, desiredState{State: s})
	switch {
	case err != nil && s == api.StateRunning:
		return err
	case err != nil:
		err = fmt.Errorf("%s is %s, which may not survive the daemon: %w", r.name, s, err)
	}
	r.updateRunnerCommandLocked(func(o *runnerCommand) { o.desired = desiredState{State: s} })
	if s == api.StateRunning {
		r.statsTracker.resetLimitUsage()
		r.resetCountsIfLimitReached = true
		r.setStateLocked(s, "")
	}
	return err
}

// currentState returns what the project does, and why.
func (r *projectRunner) currentState() (api.ProjectState, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state, r.stateReason
}

// apiProject returns the project as the API shows it.
func (r *projectRunner) apiProject(ctx context.Context) api.Project {
	r.mu.Lock()
	p := api.Project{Name: r.name, State: r.state, StateReason: r.stateReason, FileError: r.command.projectFileError, StateSince: r.stateSince}
	loaded := r.command.lastValidProject
	r.mu.Unlock()
	if loaded != nil {
		p.FileLoadedAt, p.Workers, p.HandlerName = loaded.loadedAt.UTC(), loaded.project.Limits.Workers, loaded.project.Handler
		p.UserAgent = loaded.project.UserAgent()
	}
	p.Stats, p.RecentThroughput = r.statsTracker.totalStats(), r.statsTracker.recentThroughput()
	p.MachinePauseReason, p.MachineLoadVisitLimit = r.statsTracker.machinePauseAndLoadLimit()
	if p.MachinePauseReason != "" && p.StateReason == "" {
		p.StateReason = "visits are paused, and no host is charged: " + p.MachinePauseReason
	}
	if unavailable := r.storeAvailabilityError(); unavailable != nil && p.StateReason == "" {
		p.StateReason = unavailable.Error()
	}
	if diskFull := r.diskFullState.currentError(); diskFull != nil && p.StateReason == "" {
		p.StateReason = diskFull.Error()
	}
	c := r.storeHandle.lastKnownStats()
	if !r.hasRemoteStore() { // else sample asks, so that nobody waits for servers
		var err error
		if c, err = r.storeHandle.latestStats(ctx); err != nil {
			r.env.Log.Debug("what the project holds cannot be told", "error", err) // it has failed, and says so
			return p
		}
	}
	p.FrontierCounts = api.FrontierCounts{
		QueuedHosts: c.counts.QueuedHosts, DueHosts: c.counts.DueHosts, QueuedURLs: c.counts.QueuedURLs, LeasedURLs: c.counts.LeasedURLs,
		ParkedURLs: c.counts.ParkedURLs, AwaitingRevisit: c.counts.AwaitingRevisit, SuspendedURLs: c.counts.SuspendedURLs, SeenURLs: c.counts.SeenURLs,
	}
	p.LargestDelayShortfall = api.Milliseconds(c.largestDelayShortfall)
	return p
}

// publishThroughputSample takes a sample of what the project does, if it does anything.
func (r *projectRunner) publishThroughputSample(ctx context.Context, now time.Time) {
	if state, _ := r.currentState(); state == api.StateStopped || state == api.StateFailed {
		return
	}
	c, err := r.storeHandle.latestStats(ctx)
	if err != nil {
		return // show tells
	}
	if r.hasRemoteStore() && c.counts.QueuedURLs > 0 {
		r.resumeIfDone()
	}
	s := r.statsTracker.takeSample(now, c.counts.QueuedURLs)
	r.eventBroker.publish(api.Event{At: s.At, Type: "sample", Project: r.name, Throughput: &s})
}

// haltCrawl breaks off what the project has in hand.
func (r *projectRunner) haltCrawl() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.engine != nil && r.engine.Crawler != nil {
		r.engine.Crawler.Halt()
	}
}

// activeVisits returns the visits in hand: those whose request was made.
func (r *projectRunner) activeVisits() []api.ActiveVisit {
	r.mu.Lock()
	var current *crawler.Crawler
	if r.engine != nil && r.interruptRun != nil {
		current = r.engine.Crawler
	}
	r.mu.Unlock()
	visits := []api.ActiveVisit{}
	if current == nil {
		return visits
	}
	for _, h := range current.ListActiveVisits() {
		if !h.RequestedAt.IsZero() {
			visits = append(visits, api.ActiveVisit{URL: h.URL.String(), Host: h.Host, RequestedAt: h.RequestedAt.UTC(), Kind: visitKind(h)})
		}
	}
	return visits
}

// visitKind says what a visit is to.
func visitKind(h crawler.ActiveVisit) string {
	switch {
	case h.ForRobots:
		return "robots"
	case h.Source == storage.SourcePrerequisite:
		return "sitemap"
	}
	return "page"
}
