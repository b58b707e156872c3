package supervisor

import (
	"context"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// apiProject returns the project as the API shows it.
func (r *projectRunner) apiProject(ctx context.Context) api.Project {
	p, loaded := r.state.apiState()
	if loaded != nil {
		p.FileLoadedAt, p.Workers, p.HandlerName = loaded.loadedAt.UTC(), loaded.project.Limits.Workers, loaded.project.Handler
		p.UserAgent = loaded.project.UserAgent()
	}
	// Say what it did, and why nothing happens if that is so.
	r.statsTracker.setStats(&p)
	if p.MachinePauseReason != "" && p.StateReason == "" {
		p.StateReason = "visits are paused, and no host is charged: " + p.MachinePauseReason
	}
	if unavailable := r.availability.err(); unavailable != nil && p.StateReason == "" {
		p.StateReason = unavailable.Error()
	}
	if diskFull := r.diskFullState.currentError(); diskFull != nil && p.StateReason == "" {
		p.StateReason = diskFull.Error()
	}
	// Say what its stores hold.
	c := r.storeHandle.lastKnownStats()
	if !r.state.hasRemoteStore() { // else publishThroughputSample asks, so that no caller waits for servers
		var err error
		if c, err = r.storeHandle.latestStats(ctx); err != nil {
			r.env.Log.Debug("what the project holds cannot be told", "error", err)
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

// publishThroughputSample publishes what the project did in the last second, if it is active.
func (r *projectRunner) publishThroughputSample(ctx context.Context, now time.Time) {
	if state, _ := r.state.current(); state == api.StateStopped || state == api.StateFailed {
		return
	}
	c, err := r.storeHandle.latestStats(ctx)
	if err != nil {
		return // apiProject logs it
	}
	if r.state.hasRemoteStore() && c.counts.QueuedURLs > 0 {
		r.state.resumeIfDone()
	}
	s := r.statsTracker.takeSample(now, c.counts.QueuedURLs)
	r.eventBroker.publish(api.Event{At: s.At, Type: "sample", Project: r.name, Throughput: &s})
}
