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

// A quietPeriod is a time in which some hosts must not receive requests.
type quietPeriod struct {
	reason       string
	hosts        []string
	from, to     time.Time
	firstBrakeAt time.Time // just before the first brake was set; zero: no brake was set
}

// An operator acts as operators do while a daemon runs, in rounds. Only the goroutine of runRounds
// uses it until runRounds returns.
type operator struct {
	options          soakOptions
	daemon           *daemonProcess
	webAddr          string // address of the web
	round            int
	hostQuietPeriods []quietPeriod // all quiet periods so far
}

// runRounds makes rounds of three steps until ctx is done.
func (o *operator) runRounds(ctx context.Context) error {
	for ; ; o.round++ {
		for _, step := range []func(context.Context) error{o.brakeAndReleaseHosts, o.pauseAndResumeProject,
			o.breakAndFixProjectFile} {
			if !sleep(ctx, o.options.Duration/60) {
				return nil
			}
			// Complete every step, so that no brake or pause remains afterwards.
			if err := step(context.WithoutCancel(ctx)); err != nil {
				return err
			}
		}
	}
}

// brakeAndReleaseHosts stops three hosts with brakes for a while.
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
	// Hold the brakes for two delays at least: a server that learns late that a request was cut
	// must not see the first request after the brake as too early.
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

// pauseAndResumeProject pauses the first project for a while. The other project still visits the
// hosts that both share, so these have no quiet period.
func (o *operator) pauseAndResumeProject(ctx context.Context) error {
	jobs := o.options.projects()
	h := quietPeriod{reason: "the project was paused"}
	for i := jobs[0].FirstHostIndex; i < jobs[1].FirstHostIndex; i++ {
		h.hosts = append(h.hosts, web.Host(i))
	}
	if err := o.daemon.changeProjectStateAndWait(ctx, jobs[0].ProjectName, api.ActionPause,
		api.StatePaused); err != nil {
		return err
	}
	h.from = time.Now()
	sleep(ctx, o.options.Duration/180)
	h.to = time.Now()
	o.hostQuietPeriods = append(o.hostQuietPeriods, h)
	return o.daemon.changeProjectStateAndWait(ctx, jobs[0].ProjectName, api.ActionResume, api.StateRunning)
}

// breakAndFixProjectFile writes an error into a project file and waits until the daemon reports it.
// Then it writes a valid change and waits until the daemon applies it.
func (o *operator) breakAndFixProjectFile(ctx context.Context) error {
	// The project must continue with its last valid file.
	project := o.options.projects()[1]
	if err := o.replaceProjectFile(project.ProjectName, []byte("politness: {delay: 1s}\n")); err != nil {
		return err
	}
	err := o.daemon.awaitProjectsCondition(ctx, "the daemon reports the error in a project file",
		func(all map[string]api.Project) bool {
			p := all[project.ProjectName]
			return p.State == api.StateRunning && strings.Contains(p.FileError, "unknown field")
		})
	if err != nil {
		return err
	}
	// Change the number of workers.
	n := initialWorkers + 1 + o.round%2
	if err := o.replaceProjectFile(project.ProjectName, project.projectFileText(o.options, o.webAddr, n)); err != nil {
		return err
	}
	return o.daemon.awaitProjectsCondition(ctx, "the daemon applies a change of a project file",
		func(all map[string]api.Project) bool {
			p := all[project.ProjectName]
			return p.State == api.StateRunning && p.FileError == "" && p.Workers == n
		})
}

// replaceProjectFile replaces the file of a project atomically, as editors do.
func (o *operator) replaceProjectFile(project string, text []byte) error {
	file := o.daemon.projectFilePath(project)
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// maxClientLag is how much later than the server a client may have a response.
const maxClientLag = time.Second

// mayHaveBeenCutByBrake reports whether a brake may have cut a request whose response was on its
// way. Only the client knows the result of such a request.
func (o *operator) mayHaveBeenCutByBrake(x crawltest.Exchange) bool {
	return slices.ContainsFunc(o.hostQuietPeriods, func(h quietPeriod) bool {
		return !h.firstBrakeAt.IsZero() && x.Start.Before(h.from) && x.End.Add(maxClientLag).After(h.firstBrakeAt) &&
			slices.Contains(h.hosts, hostOf(x.URL))
	})
}

// maxRequestsCutByBrakes returns how many of the requests that only the daemon has counted brakes
// may have cut on their way to the server: one for each brake, because a host has one request at a
// time.
func (o *operator) maxRequestsCutByBrakes(requests float64) float64 {
	brakes := 0
	for _, h := range o.hostQuietPeriods {
		if !h.firstBrakeAt.IsZero() {
			brakes += len(h.hosts)
		}
	}
	return max(0, min(requests, float64(brakes)))
}

// checkQuietPeriods returns an error for each request to a host in one of its quiet periods.
func (o *operator) checkQuietPeriods(log []crawltest.Exchange) error {
	var errs []error
	for _, h := range o.hostQuietPeriods {
		for _, x := range log {
			if x.Start.After(h.from) && x.Start.Before(h.to) && slices.Contains(h.hosts, hostOf(x.URL)) {
				errs = append(errs, fmt.Errorf("%s was requested %v after %s", x.URL, x.Start.Sub(h.from), h.reason))
			}
		}
	}
	return errors.Join(errs...)
}
