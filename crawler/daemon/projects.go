package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// Projects returns all projects, by name.
func (s *supervisor) Projects(ctx context.Context) ([]api.Project, error) {
	projects := []api.Project{}
	for _, r := range s.all() {
		projects = append(projects, r.show(ctx))
	}
	return projects, nil
}

// Project returns one project.
func (s *supervisor) Project(ctx context.Context, name string) (*api.Project, error) {
	r, err := s.find(name)
	if err != nil {
		return nil, err
	}
	p := r.show(ctx)
	return &p, nil
}

// ProjectFile returns the file of a project, as it is now.
func (s *supervisor) ProjectFile(_ context.Context, name string) ([]byte, error) {
	if _, err := s.find(name); err != nil {
		return nil, err
	}
	text, err := readLimited(s.projectFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, api.NotFound("the file of project %s is gone", name)
	}
	return text, err
}

// PutProject writes the file of a project, and has the project follow it.
func (s *supervisor) PutProject(_ context.Context, name string, file []byte) (created bool, err error) {
	if !projectName.MatchString(name) {
		return false, api.InvalidInput("%q is not a project's name: expected 1 to 64 of a-z, 0-9 and -", name)
	}
	if len(file) > maxProjectFile {
		return false, api.InvalidInput("a project file may not be longer than 1 MiB; put long lists of seeds into seed_files")
	}
	s.scanning.Lock()
	defer s.scanning.Unlock()
	if s.isShuttingDown {
		return false, errEnding
	}
	if _, err := s.edit(name, file, true); err != nil {
		return false, api.InvalidInput("%w", err)
	}
	// Record that the file came by the API before the file is written: after a crash,
	// the daemon takes no file of the API for the operator's.
	if err := s.wishes.addAPIFile(name, sumOf(file)); err != nil {
		return false, err
	}
	_, err = os.Stat(s.projectFile(name))
	created = errors.Is(err, fs.ErrNotExist)
	if err := writeWhole(s.projectFile(name), file); err != nil {
		return false, err
	}
	if err := s.wishes.keepAPIFile(name, sumOf(file)); err != nil {
		s.app.log.Warn("what the API wrote before is still noted", "project", name, "error", err)
	}
	s.follow(name)
	return created, nil
}

// Do has a project start, pause, resume or stop. That it was told is on the disk
// when Do returns; what it has in hand is finished then, or after.
func (s *supervisor) ControlProject(_ context.Context, name string, action api.ProjectAction) error {
	r, err := s.find(name)
	if err != nil {
		return err
	}
	switch action {
	case api.ActionStart, api.ActionResume:
		return r.demand(api.StateRunning)
	case api.ActionPause:
		return r.demand(api.StatePaused)
	case api.ActionStop:
		return r.demand(api.StateStopped)
	}
	return api.InvalidInput("%q is not one of start, pause, resume, stop", action)
}

// DeleteProject stops a project, and moves its file and its state to where nobody
// follows them.
func (s *supervisor) DeleteProject(_ context.Context, name string) error {
	s.scanning.Lock()
	defer s.scanning.Unlock()
	if s.isShuttingDown {
		return errEnding
	}
	r, err := s.find(name)
	if err != nil {
		return err
	}
	r.change(func(o *orders) { o.quit = true })
	<-r.ended
	if err := r.vault.shut(); err != nil { // what was lost is lost as a whole
		r.app.log.Error("the last moment of the project is lost", "error", err)
	}
	s.mu.Lock()
	delete(s.runners, name)
	s.mu.Unlock()
	err = s.putAway(name)
	if err == nil {
		err = s.wishes.forget(name)
	}
	if err != nil {
		s.follow(name) // it is not deleted
		return err
	}
	s.retire(r, time.Now())
	s.metrics.Forget(name)
	s.hub.tell(api.Event{Type: "state", Project: name, State: api.StateStopped, Message: "deleted"})
	return nil
}

// putAway moves the file and the state of a project, or, if it returns an error,
// neither: a project must not begin anew because its file is on a file system that
// cannot be written.
func (s *supervisor) putAway(name string) error {
	aside := s.data.path(filepath.Join(deletedDir, name+"-"+time.Now().UTC().Format("20060102T150405.000Z")))
	if err := os.MkdirAll(filepath.Dir(aside), privateDir); err != nil {
		return err
	}
	err := os.Rename(string(s.home(name)), aside)
	if errors.Is(err, fs.ErrNotExist) { // it never ran
		err = os.Mkdir(aside, privateDir)
	}
	if err != nil {
		return err
	}
	file := filepath.Join(aside, name+projectExt)
	if err = moveFile(s.projectFile(name), file); err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_ = os.Remove(file) // the copy, if there is one
	if os.Remove(aside) != nil {
		err = errors.Join(err, os.Rename(aside, string(s.home(name))))
	}
	return err
}

// moveFile moves a file, also to another file system.
func moveFile(from, to string) error {
	text, err := readLimited(from)
	if err != nil {
		return err
	}
	if err := writeWhole(to, text); err != nil {
		return err
	}
	return os.Remove(from)
}

// Reload reads all project files again.
func (s *supervisor) ReloadProjects(context.Context) ([]api.ReloadResult, error) {
	result := s.scan()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble != "" {
		return nil, api.Conflict("the folder of project files cannot be read: %s", s.trouble)
	}
	return result, nil
}

// Visits returns the visits that a project has in hand.
func (s *supervisor) ActiveVisits(_ context.Context, name string) ([]api.ActiveVisit, error) {
	r, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return r.visits(), nil
}

// Throughput returns what a project did lately.
func (s *supervisor) Throughput(_ context.Context, name string, coarse bool) ([]api.ThroughputSample, error) {
	r, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return r.meter.samples(coarse), nil
}

// Events tells what happens to a project, or to all, until ctx is done.
func (s *supervisor) Events(ctx context.Context, name string) (iter.Seq[api.Event], error) {
	if name != "" {
		if _, err := s.find(name); err != nil {
			return nil, err
		}
	}
	return s.hub.listen(ctx, name), nil
}

// Ready returns why not all projects that should run do so; nil if they do. It joins
// one error for each reason.
func (s *supervisor) CheckReady(context.Context) error {
	var reasons []error
	if short := s.shortage.why(); short != nil {
		reasons = append(reasons,
			fmt.Errorf("%w: what is known of robots.txt files cannot be written: %w", api.ErrDiskFull, short))
	}
	for _, r := range s.all() {
		if err := r.ready(); err != nil {
			reasons = append(reasons, err)
		}
	}
	return errors.Join(reasons...)
}

// ready returns why the project does not run although it should; nil if it runs or
// should not run.
func (r *runner) ready() error {
	state, why := r.currentState()
	lost, short := r.lost(), r.shortage.why()
	switch {
	case state == api.StateFailed:
		return api.Conflict("project %s has failed: %s", r.name, why)
	case state == api.StateStopped:
		return nil
	case short != nil:
		return fmt.Errorf("%w: project %s waits: %w", api.ErrDiskFull, r.name, short)
	case lost != nil && passing(lost):
		return fmt.Errorf("%w: project %s waits: %w", api.ErrDiskFull, r.name, lost)
	case lost != nil:
		return r.unavailable(nil)
	}
	return nil
}

// About tells site owners under which names the daemon crawls.
func (s *supervisor) About() api.About {
	about := api.About{Version: decorum.Version(), Identities: []api.CrawlerIdentity{}}
	seen := map[api.CrawlerIdentity]bool{}
	for _, r := range s.all() {
		ed := r.edition()
		if ed == nil {
			continue
		}
		p := api.CrawlerIdentity{ProductToken: ed.project.Agent.Product, UserAgent: ed.project.userAgent(), Contact: ed.project.Agent.Contact,
			SigningKeyDirectoryURL: ed.project.Agent.Signature.location()}
		if !seen[p] {
			seen[p] = true
			about.Identities = append(about.Identities, p)
		}
	}
	return about
}
