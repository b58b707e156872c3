package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A job is a project of the daemon's: the hosts from First up to End.
type job struct {
	Name       string
	First, End int
}

// jobs are the projects of a soak: two that share a quarter of the hosts, and one.
func (p plan) jobs() []job {
	quarter := p.Web.Hosts / 4
	return []job{{"north", 0, 2 * quarter}, {"south", quarter, 3 * quarter}, {"west", 3 * quarter, p.Web.Hosts}}
}

const project = `project: %s
agent: {product: soakbot, version: "1", contact: "mailto:soak@example.com"}
seeds: [%s]
scope: {max_urls_per_host: %d}
politeness: {delay: %s, adaptive: 0, ip: {concurrency: 64}}
limits: {workers: %d}
fetch: {allow_private: true, connect_to: ["::%s"]}
`

const workers = 64

// file is the project file of a job.
func (j job) file(p plan, address string, workers int) []byte {
	seeds := make([]string, 0, j.End-j.First)
	for h := j.First; h < j.End; h++ {
		seeds = append(seeds, "http://"+hostName(h)+"/")
	}
	return fmt.Appendf(nil, project, j.Name, strings.Join(seeds, ", "), p.urls(), p.Web.Delay, workers, address)
}

// urls is how many URLs of a host a project takes: all that it can visit in the time
// of the plan, and a third more. A host's queue has them within a few minutes, and from
// then on it is what a crawl keeps that is measured, not how its frontier grows.
func (p plan) urls() int { return 20 + int(4*p.Time/(3*p.Web.Delay)) }

// A hush is a time in which some hosts must not be asked for anything.
type hush struct {
	why      string
	hosts    []string
	from, to time.Time
	brakes   time.Time // when the first brake was about to be put on; zero: none was
}

// An operator does what operators do while a daemon runs, in turn and over and over.
type operator struct {
	plan    plan
	daemon  *process
	address string // of the web
	round   int
	hushes  []hush
}

// work goes its rounds until ctx is done.
func (o *operator) work(ctx context.Context) error {
	for ; ; o.round++ {
		for _, step := range []func(context.Context) error{o.brake, o.pause, o.edit} {
			if !rest(ctx, o.plan.Time/60) {
				return nil
			}
			// What is begun is ended, so that all hosts can be visited afterwards.
			if err := step(context.WithoutCancel(ctx)); err != nil {
				return err
			}
		}
	}
}

// brake stops three hosts for a while.
func (o *operator) brake(ctx context.Context) error {
	h := hush{why: "a brake was on", brakes: time.Now()}
	for i := range 3 {
		h.hosts = append(h.hosts, hostName((o.round*41+i*7)%o.plan.Web.Hosts))
	}
	for _, host := range h.hosts {
		if _, err := o.daemon.SetBrake(ctx, host, api.BrakeRequest{Stop: true, Reason: "soak"}); err != nil {
			return err
		}
	}
	h.from = time.Now()
	// A server that learns late that a request was broken off must not take what comes
	// when the brake is lifted for early.
	rest(ctx, max(o.plan.Time/60, 2*o.plan.Web.Delay))
	h.to = time.Now()
	o.hushes = append(o.hushes, h)
	for _, host := range h.hosts {
		if err := o.daemon.LiftBrake(ctx, host, "soak"); err != nil {
			return err
		}
	}
	return nil
}

// pause pauses the first project for a while: of its hosts those that it shares are
// visited all the same.
func (o *operator) pause(ctx context.Context) error {
	jobs := o.plan.jobs()
	h := hush{why: "the project was paused"}
	for i := jobs[0].First; i < jobs[1].First; i++ {
		h.hosts = append(h.hosts, hostName(i))
	}
	if err := o.daemon.become(ctx, jobs[0].Name, api.ActionPause, api.StatePaused); err != nil {
		return err
	}
	h.from = time.Now()
	rest(ctx, o.plan.Time/180)
	h.to = time.Now()
	o.hushes = append(o.hushes, h)
	return o.daemon.become(ctx, jobs[0].Name, api.ActionResume, api.StateRunning)
}

// edit writes nonsense into a project file, waits until the daemon says so, and then
// a change that it must follow.
func (o *operator) edit(ctx context.Context) error {
	j := o.plan.jobs()[1]
	if err := o.write(j.Name, []byte("politness: {delay: 1s}\n")); err != nil {
		return err
	}
	err := o.daemon.await(ctx, "the daemon says what is wrong with a project file", func(all map[string]api.Project) bool {
		p := all[j.Name]
		return p.State == api.StateRunning && strings.Contains(p.FileError, "unknown field")
	})
	if err != nil {
		return err
	}
	n := workers + 1 + o.round%2
	if err := o.write(j.Name, j.file(o.plan, o.address, n)); err != nil {
		return err
	}
	return o.daemon.await(ctx, "a change of a project file is followed", func(all map[string]api.Project) bool {
		p := all[j.Name]
		return p.State == api.StateRunning && p.FileError == "" && p.Workers == n
	})
}

// write replaces the file of a project in one step, as editors do.
func (o *operator) write(project string, text []byte) error {
	file := o.daemon.file(project)
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// late is by how much later than its server a client may have an answer.
const late = time.Second

// cut reports whether a brake may have broken off a request while its answer was on
// its way: what became of it the client alone knows.
func (o *operator) cut(x crawltest.Exchange) bool {
	return slices.ContainsFunc(o.hushes, func(h hush) bool {
		return !h.brakes.IsZero() && x.Start.Before(h.from) && x.End.Add(late).After(h.brakes) && slices.Contains(h.hosts, hostOf(x.URL))
	})
}

// unseen returns how many of so many requests, of which the daemon alone knows, brakes
// may have broken off on their way to the server: one each, as a host has one at a time.
func (o *operator) unseen(requests float64) float64 {
	brakes := 0
	for _, h := range o.hushes {
		if !h.brakes.IsZero() {
			brakes += len(h.hosts)
		}
	}
	return max(0, min(requests, float64(brakes)))
}

// check returns the requests that came when they must not.
func (o *operator) check(log []crawltest.Exchange) error {
	var errs []error
	for _, h := range o.hushes {
		for _, x := range log {
			if x.Start.After(h.from) && x.Start.Before(h.to) && slices.Contains(h.hosts, hostOf(x.URL)) {
				errs = append(errs, fmt.Errorf("%s was asked for %v after %s", x.URL, x.Start.Sub(h.from), h.why))
			}
		}
	}
	return errors.Join(errs...)
}
