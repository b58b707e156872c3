package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A soak is a run of the program.
type soak struct {
	plan    plan
	daemon  *process
	web     *crawltest.Web
	address string // of the web
	out     io.Writer

	operator operator
	samples  []sample
	took     time.Duration
	last     numbers // when nothing was in hand any more
}

// crawl has the daemon crawl for the time of the plan.
func (s *soak) crawl(ctx context.Context) error {
	for _, j := range s.plan.jobs() {
		if err := s.daemon.PutProject(ctx, j.Name, j.file(s.plan, s.address, workers)); err != nil {
			return fmt.Errorf("%s: %w", j.Name, err)
		}
		if err := s.daemon.become(ctx, j.Name, api.ActionStart, api.StateRunning); err != nil {
			return err
		}
	}
	begin := time.Now()
	limited, cancel := context.WithTimeout(ctx, s.plan.Time)
	defer cancel()
	s.operator = operator{plan: s.plan, daemon: s.daemon, address: s.address}
	operated := make(chan error, 1)
	go func() {
		operated <- s.operator.work(limited)
		cancel() // when it fails, all is over
	}()
	err := s.sample(limited, begin)
	cancel()
	if err := errors.Join(err, <-operated); err != nil {
		return err
	}
	s.took = time.Since(begin)
	if s.plan.Profile != "" {
		if err := s.daemon.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			return err
		}
	}
	for _, j := range s.plan.jobs() {
		if err := s.daemon.become(ctx, j.Name, api.ActionStop, api.StateStopped); err != nil {
			return err
		}
	}
	s.last, err = s.daemon.scrape(ctx)
	return err
}

// sample samples the daemon until ctx is done.
func (s *soak) sample(ctx context.Context, begin time.Time) error {
	var before sample
	visits := 0.0
	fmt.Fprintf(s.out, "%8s", "time")
	for _, one := range series {
		fmt.Fprintf(s.out, " %15s", one.name)
	}
	fmt.Fprintf(s.out, " %9s %9s\n", "visits/s", "queued")
	for rest(ctx, s.plan.Every) {
		n, err := s.daemon.scrape(context.WithoutCancel(ctx))
		if err == nil {
			err = n.addMemory(s.daemon.cmd.Process.Pid)
		}
		if err != nil {
			return err
		}
		now := sample{At: time.Since(begin), Queued: n.sum("decorum_queued")}
		for i, one := range series {
			now.Values[i] = one.of(n)
		}
		made := n.sum("decorum_visits_total")
		now.Visits = (made - visits) / (now.At - before.At).Seconds()
		s.samples, before, visits = append(s.samples, now), now, made
		fmt.Fprintf(s.out, "%8s", now.At.Round(time.Second))
		for _, v := range now.Values {
			fmt.Fprintf(s.out, " %15.1f", v)
		}
		fmt.Fprintf(s.out, " %9.1f %9.0f\n", now.Visits, now.Queued)
	}
	return nil
}

// checkResults prints what came of the run, and returns what was wrong.
func (s *soak) checkResults() error {
	log := s.web.Log()
	visits := s.last.sum("decorum_visits_total")
	fmt.Fprintf(s.out, "\n%.0f visits in %v, %.1f a second; CPU %.1f %% of a core; %d spells of silence\n\n", visits, s.took.Round(time.Second),
		visits/s.took.Seconds(), 100*s.last.sum("process_cpu_seconds_total")/s.took.Seconds(), len(s.operator.hushes))
	errs := []error{printCounts(s.out, counts(s.last, log, &s.operator)), s.operator.check(log), s.checkPoliteness(), s.printTrends()}
	return errors.Join(errs...)
}

// checkPoliteness asks both sides whether hosts had the rests that they were owed.
func (s *soak) checkPoliteness() error {
	r := s.web.Judge(crawltest.Options{MinDelay: s.plan.Web.Delay, Product: "soakbot", Revisits: true})
	short := s.last.sum("decorum_delay_shortfall_seconds")
	fmt.Fprintf(s.out, "\nthe judge: %d offences in %d requests to %d hosts; shortfall %v s\n", len(r.Offences), r.Requests, len(r.Hosts), short)
	var errs []error
	if !r.OK() {
		byRule := map[crawltest.Rule]int{}
		for _, o := range r.Offences {
			if byRule[o.Rule]++; byRule[o.Rule] <= 3 {
				errs = append(errs, fmt.Errorf("%s: %s at %v: %s", o.Rule, o.Exchange.URL, o.Exchange.Start, o.Detail))
			}
		}
		for _, rule := range slices.Sorted(maps.Keys(byRule)) {
			errs = append(errs, fmt.Errorf("%s: %d times", rule, byRule[rule]))
		}
		if r.Unlogged > 0 {
			errs = append(errs, fmt.Errorf("%d requests more than the log had room for", r.Unlogged))
		}
	}
	if short != 0 || s.last["decorum_delay_shortfall_seconds"] == nil {
		errs = append(errs, fmt.Errorf("the daemon says that a rest fell %v s short", short))
	}
	return errors.Join(errs...)
}

// printTrends plots the series, and returns which of them grow.
func (s *soak) printTrends() error {
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\n\tfirst third\tlast third\tin 10 min\tflat\t")
	var errs []error
	for i, one := range series {
		var values []float64
		for _, x := range s.samples {
			values = append(values, x.Values[i])
		}
		t := trendOf(values, s.took)
		verdict := "yes"
		switch {
		case s.took < slopeOver:
			verdict = "too short to tell"
		case !t.flat():
			verdict = "no"
			errs = append(errs, fmt.Errorf("%s: grows by %.1f %% in %v", one.name, 100*t.Slope, slopeOver))
		}
		fmt.Fprintf(table, "%s\t%.1f %s\t%.1f %s\t%+.2f %%\t%s\t%s\n", one.name, t.First, one.unit, t.Last, one.unit, 100*t.Slope, verdict, sparkline(values, 60))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return errors.Join(errs...)
}
