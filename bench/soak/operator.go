package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/web"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A quietPeriod is a time in which some hosts must not be asked for anything.
type quietPeriod struct {
	reason       string
	hosts        []string
	from, to     time.Time
	firstBrakeAt time.Time // when the first brake was about to be put on; zero: none was
}

// An operator does what operators do while a daemon runs, in turn and over and over.
type operator struct {
	options          soakOptions
	daemon           *daemonProcess
	webAddr          string // of the web
	round            int
	hostQuietPeriods []quietPeriod
}

// runRounds goes its rounds until ctx is done.
func (o *operator) runRounds(ctx context.Context) error {
	for ; ; o.round++ {
		for _, step := range []func(context.Context) error{o.brakeAndReleaseHosts, o.pauseAndResumeProject, o.breakAndFixProjectFile} {
			if !sleep(ctx, o.options.Duration/60) {
				return nil
			}
			// What is begun is ended, so that all hosts can be visited afterwards.
			if err := step(context.WithoutCancel(ctx)); err != nil {
				return err
			}
		}
	}
}

// brakeAndReleaseHosts stops three hosts for a while.
func (o *operator) brakeAndReleaseHosts(ctx context.Context) error {
	h := quietPeriod{reason: "a brake was on", firstBrakeAt: time.Now()}
	for i := range 3 {
		h.hosts = append(h.hosts, web.Host((o.round*41+i*7)%o.options.Web.Hosts))
	}
	for _, host := range h.hosts {
		if _, err := o.daemon.SetBrake(ctx, host, api.BrakeRequest{Stop: true, Reason: "soak"}); err != nil {
			return err
		}
	}
	h.from = time.Now()
	// A server that learns late that a request was broken off must not take what comes
	// when the brake is lifted for early.
	sleep(ctx, max(o.options.Duration/60, 2*o.options.Web.CrawlerDelay))
	h.to = time.Now()
	o.hostQuietPeriods = append(o.hostQuietPeriods, h)
	for _, host := range h.hosts {
		if err := o.daemon.LiftBrake(ctx, host, "soak"); err != nil {
			return err
		}
	}
	return nil
}

// pauseAndResumeProject pauses the first project for a while: of its hosts those that it shares are
// visited all the same.
func (o *operator) pauseAndResumeProject(ctx context.Context) error {
	jobs := o.options.projects()
	h := quietPeriod{reason: "the project was paused"}
	for i := jobs[0].FirstHostIndex; i < jobs[1].FirstHostIndex; i++ {
		h.hosts = append(h.hosts, web.Host(i))
	}
	if err := o.daemon.changeProjectStateAndWait(ctx, jobs[0].ProjectName, api.ActionPause, api.StatePaused); err != nil {
		return err
	}
	h.from = time.Now()
	sleep(ctx, o.options.Duration/180)
	h.to = time.Now()
	o.hostQuietPeriods = append(o.hostQuietPeriods, h)
	return o.daemon.changeProjectStateAndWait(ctx, jobs[0].ProjectName, api.ActionResume, api.StateRunning)
}

// breakAndFixProjectFile writes nonsense into a project file, waits until the daemon says so, and then
// a change that it must follow.
func (o *operator) breakAndFixProjectFile(ctx context.Context) error {
	project := o.options.projects()[1]
	if err := o.replaceProjectFile(project.ProjectName, []byte("politness: {delay: 1s}\n")); err != nil {
		return err
	}
	err := o.daemon.awaitProjectsCondition(ctx, "the daemon says what is wrong with a project file", func(all map[string]api.Project) bool {
		p := all[project.ProjectName]
		return p.State == api.StateRunning && strings.Contains(p.FileError, "unknown field")
	})
	if err != nil {
		return err
	}
	n := initialWorkers + 1 + o.round%2
	if err := o.replaceProjectFile(project.ProjectName, project.projectFileText(o.options, o.webAddr, n)); err != nil {
		return err
	}
	return o.daemon.awaitProjectsCondition(ctx, "a change of a project file is followed", func(all map[string]api.Project) bool {
		p := all[project.ProjectName]
		return p.State == api.StateRunning && p.FileError == "" && p.Workers == n
	})
}

// replaceProjectFile replaces the file of a project in one step, as editors do.
func (o *operator) replaceProjectFile(project string, text []byte) error {
	file := o.daemon.projectFilePath(project)
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// maxClientLag is by how much later than its server a client may have an answer.
const maxClientLag = time.Second

// mayHaveBeenCutByBrake reports whether a brake may have broken off a request while its answer was on
// its way: what became of it the client alone knows.
func (o *operator) mayHaveBeenCutByBrake(x crawltest.Exchange) bool {
	return slices.ContainsFunc(o.hostQuietPeriods, func(h quietPeriod) bool {
		return !h.firstBrakeAt.IsZero() && x.Start.Before(h.from) && x.End.Add(maxClientLag).After(h.firstBrakeAt) && slices.Contains(h.hosts, hostOf(x.URL))
	})
}

// maxRequestsCutByBrakes returns how many of so many requests, of which the daemon alone knows, brakes
// may have broken off on their way to the server: one each, as a host has one at a time.
func (o *operator) maxRequestsCutByBrakes(requests float64) float64 {
	brakes := 0
	for _, h := range o.hostQuietPeriods {
		if !h.firstBrakeAt.IsZero() {
			brakes += len(h.hosts)
		}
	}
	return max(0, min(requests, float64(brakes)))
}

// checkQuietPeriods returns the requests that came when they must not.
func (o *operator) checkQuietPeriods(log []crawltest.Exchange) error {
	var errs []error
	for _, h := range o.hostQuietPeriods {
		for _, x := range log {
			if x.Start.After(h.from) && x.Start.Before(h.to) && slices.Contains(h.hosts, hostOf(x.URL)) {
				errs = append(errs, fmt.Errorf("%s was asked for %v after %s", x.URL, x.Start.Sub(h.from), h.reason))
			}
		}
	}
	return errors.Join(errs...)
}
