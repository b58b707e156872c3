package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/disk"
)

// Projects implements api.Daemon. The projects are sorted by name.
func (s *Supervisor) Projects(ctx context.Context) ([]api.Project, error) {
	projects := []api.Project{}
	for _, r := range s.runners.all() {
		projects = append(projects, r.apiProject(ctx))
	}
	return projects, nil
}

// Project returns the project of a name, or an api.NotFound error.
func (s *Supervisor) Project(ctx context.Context, name string) (*api.Project, error) {
	r, err := s.runners.find(name)
	if err != nil {
		return nil, err
	}
	p := r.apiProject(ctx)
	return &p, nil
}

// ReadProjectFile returns the present text of a project's file, valid or not.
func (s *Supervisor) ReadProjectFile(_ context.Context, name string) ([]byte, error) {
	if _, err := s.runners.find(name); err != nil {
		return nil, err
	}
	text, err := readProjectFileBytes(s.projectFilePath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, api.NotFound("the file of project %s is gone", name)
	}
	return text, err
}

// PutProject validates and writes the file of a project, and makes the project follow it. It reports
// whether the file is new. An invalid file changes nothing.
func (s *Supervisor) PutProject(_ context.Context, name string, file []byte) (created bool, err error) {
	if !project.NamePattern.MatchString(name) {
		return false, api.InvalidInput("%q is not a project's name: expected 1 to 64 of a-z, 0-9 and -", name)
	}
	if len(file) > project.MaxFileSize {
		return false, api.InvalidInput("a project file may not be longer than 1 MiB; put long lists of seeds into " +
			"seed_files")
	}
	// Validate under the lock: another project could take the same output meanwhile.
	s.projectFilesMu.Lock()
	defer s.projectFilesMu.Unlock()
	if s.isShuttingDown {
		return false, errShuttingDown
	}
	if _, err := s.loader.parseAndValidateProject(name, file, true); err != nil {
		return false, api.InvalidInput("%w", err)
	}
	// Record that the file came by the API before the file is written. Otherwise, after a crash, the
	// daemon would take it for the operator's.
	if err := s.stateStore.addAPIProjectFileHash(name, sha256Hex(file)); err != nil {
		return false, err
	}
	_, err = os.Stat(s.projectFilePath(name))
	created = errors.Is(err, fs.ErrNotExist)
	if err := datadir.WriteFileAtomic(s.projectFilePath(name), file); err != nil {
		return false, err
	}
	if err := s.stateStore.setAPIProjectFileHash(name, sha256Hex(file)); err != nil {
		s.env.Log.Warn("the previous project file still counts as one from the API", "project", name, "error", err)
	}
	s.reloadProject(name)
	return created, nil
}

// ControlProject starts, pauses, resumes or stops a project. When it returns nil, the command is on the
// disk; active visits continue until they are finished. Before a start it reads the project's file again, so
// that the state it leads to is that of the present file.
func (s *Supervisor) ControlProject(_ context.Context, name string, action api.ProjectAction) error {
	r, err := s.runners.find(name)
	if err != nil {
		return err
	}
	switch action {
	case api.ActionStart, api.ActionResume:
		s.reloadBeforeStart(r)
		return r.state.setDesired(api.StateRunning)
	case api.ActionPause:
		return r.state.setDesired(api.StatePaused)
	case api.ActionStop:
		return r.state.setDesired(api.StateStopped)
	}
	return api.InvalidInput("%q is not one of start, pause, resume, stop", action)
}

// reloadBeforeStart reads the file of a project that is about to start. A user may have changed it just now.
func (s *Supervisor) reloadBeforeStart(r *projectRunner) {
	s.projectFilesMu.Lock()
	defer s.projectFilesMu.Unlock()
	if !s.isShuttingDown {
		s.reloadProjectFile(r)
	}
}

// DeleteProject stops a project, waits for its active visits, and moves its file and its state to the
// directory of deleted projects. If it returns an error, the daemon still knows the project.
func (s *Supervisor) DeleteProject(_ context.Context, name string) error {
	s.projectFilesMu.Lock()
	defer s.projectFilesMu.Unlock()
	if s.isShuttingDown {
		return errShuttingDown
	}
	r, err := s.runners.find(name)
	if err != nil {
		return err
	}
	// End the runner, and close its stores. A lost write does not matter for a project that goes away.
	r.state.updateCommand(func(o *runnerTarget) { o.mustQuit = true })
	<-r.ended
	if err := r.storeHandle.closeForGood(); err != nil {
		r.env.Log.Error("the last changes of the project are lost", "error", err)
	}
	// Move the files. If that fails, a new runner continues the project.
	s.runners.remove(name)
	err = s.moveToDeleted(name)
	if err == nil {
		err = s.stateStore.update(func(t *savedDaemonState) {
			delete(t.DesiredStates, name)
			delete(t.APIProjects, name)
		})
	}
	if err != nil {
		s.reloadProject(name)
		return err
	}
	// Publish the project's keys until its signatures expire, and report the deletion.
	s.retiredKeyrings.add(r.state.requestSigningKeys(), time.Now())
	s.Metrics.DeleteProject(name)
	s.eventBroker.publish(api.Event{Type: "state", Project: name, State: api.StateStopped, Message: "deleted"})
	return nil
}

// ProjectActiveVisits returns the active visits of a project whose request was sent.
func (s *Supervisor) ProjectActiveVisits(_ context.Context, name string) ([]api.ActiveVisit, error) {
	r, err := s.runners.find(name)
	if err != nil {
		return nil, err
	}
	return r.engine.activeVisits(), nil
}

// ProjectThroughput returns the throughput samples of a project, the oldest first: one per minute for
// the last 24 hours, or one per second for the last 10 minutes.
func (s *Supervisor) ProjectThroughput(_ context.Context, name string, perMinute bool) ([]api.ThroughputSample, error) {
	r, err := s.runners.find(name)
	if err != nil {
		return nil, err
	}
	return r.statsTracker.throughputSamples(perMinute), nil
}

// SubscribeEvents returns the events of a project, or of all projects if name is empty, from now on
// until ctx is done.
func (s *Supervisor) SubscribeEvents(ctx context.Context, name string) (iter.Seq[api.Event], error) {
	if name != "" {
		if _, err := s.runners.find(name); err != nil {
			return nil, err
		}
	}
	return s.eventBroker.subscribe(ctx, name), nil
}

// CheckReady returns nil if every project that should run does, and the robots.txt files can be saved.
// Otherwise it joins one error for each reason.
func (s *Supervisor) CheckReady(context.Context) error {
	var reasons []error
	if diskFull := s.robotsDiskFull.currentError(); diskFull != nil {
		reasons = append(reasons,
			fmt.Errorf("%w: robots.txt files cannot be saved: %w", api.ErrDiskFull, diskFull))
	}
	for _, r := range s.runners.all() {
		reasons = append(reasons, r.readinessError())
	}
	return errors.Join(reasons...)
}

// readinessError returns why the project does not run although it should, or nil if it runs or should
// not run.
func (r *projectRunner) readinessError() error {
	state, reason := r.state.current()
	unavailable, diskFull := r.availability.err(), r.diskFullState.currentError()
	switch {
	case state == api.StateFailed:
		return api.Conflict("project %s has failed: %s", r.name, reason)
	case state == api.StateStopped:
		return nil
	case diskFull != nil:
		return fmt.Errorf("%w: project %s waits: %w", api.ErrDiskFull, r.name, diskFull)
	case unavailable != nil && disk.IsFull(unavailable):
		return fmt.Errorf("%w: project %s waits: %w", api.ErrDiskFull, r.name, unavailable)
	case unavailable != nil:
		return r.availability.wrapIfUnavailable(nil)
	}
	return nil
}

// CrawlerIdentities returns, for site owners, the identities under which the daemon crawls. Projects
// with the same identity are listed once.
func (s *Supervisor) CrawlerIdentities() api.CrawlerIdentities {
	about := api.CrawlerIdentities{Version: decorum.Version(), Identities: []api.CrawlerIdentity{}}
	for _, loaded := range s.runners.loadedProjects() {
		p := api.CrawlerIdentity{ProductToken: loaded.project.Agent.Product, UserAgent: loaded.project.UserAgent(),
			Contact:                loaded.project.Agent.Contact,
			SigningKeyDirectoryURL: loaded.project.Agent.Signature.KeyDirectoryURL()}
		if !slices.Contains(about.Identities, p) {
			about.Identities = append(about.Identities, p)
		}
		if ttl := api.Milliseconds(loaded.project.Robots.MaxTTL); ttl > api.Milliseconds(24*time.Hour) {
			about.RobotsMaxTTL = max(about.RobotsMaxTTL, ttl)
		}
	}
	return about
}

// apiProject returns the project as the API shows it.
func (r *projectRunner) apiProject(ctx context.Context) api.Project {
	p, loaded := r.state.apiState()
	if loaded != nil {
		p.FileLoadedAt, p.Workers, p.HandlerName = loaded.loadedAt.UTC(),
			loaded.project.Limits.Workers, loaded.project.Handler
		p.UserAgent = loaded.project.UserAgent()
	}
	// Add the throughput and, if no visit begins, why.
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
	// Add the counts of the stores. Those in Redis are read by publishThroughputSample only, so that no
	// caller waits for servers.
	c := r.storeHandle.lastKnownStats()
	if r.state.redisStoreIdentity() == "" {
		var err error
		if c, err = r.storeHandle.latestStats(ctx); err != nil {
			r.env.Log.Debug("the counts of the project cannot be read", "error", err)
			return p
		}
	}
	p.FrontierCounts = api.FrontierCounts(c.counts)
	p.LargestDelayShortfall = api.Milliseconds(c.largestDelayShortfall)
	return p
}

// publishThroughputSample publishes the throughput of the last second of a project that is neither
// stopped nor failed. It also resumes a project in Redis for which another process has queued URLs.
func (r *projectRunner) publishThroughputSample(ctx context.Context, now time.Time) {
	if state, _ := r.state.current(); state == api.StateStopped || state == api.StateFailed {
		return
	}
	c, err := r.storeHandle.latestStats(ctx)
	if err != nil {
		return // apiProject logs it
	}
	if r.state.redisStoreIdentity() != "" && c.counts.QueuedURLs > 0 {
		r.state.resumeIfDone()
	}
	s := r.statsTracker.takeSample(now, c.counts.QueuedURLs)
	r.eventBroker.publish(api.Event{At: s.At, Type: "sample", Project: r.name, Throughput: &s})
}
