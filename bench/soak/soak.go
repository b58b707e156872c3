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

// A soakRun is a run of the program.
type soakRun struct {
	options soakOptions
	daemon  *daemonProcess
	web     *crawltest.Web
	webAddr string // address of the web
	out     io.Writer

	operator     operator
	samples      []sample
	duration     time.Duration
	finalMetrics metricFamilies // after the end of all visits
}

// runCrawl lets the daemon crawl for options.Duration, while the operator acts and the program takes
// samples.
func (s *soakRun) runCrawl(ctx context.Context) error {
	for _, project := range s.options.projects() {
		if err := s.daemon.PutProject(ctx, project.ProjectName,
			project.projectFileText(s.options, s.webAddr, initialWorkers)); err != nil {
			return fmt.Errorf("%s: %w", project.ProjectName, err)
		}
		if err := s.daemon.changeProjectStateAndWait(ctx, project.ProjectName, api.ActionStart,
			api.StateRunning); err != nil {
			return err
		}
	}
	// Sample the daemon until the time is over or the operator fails.
	begin := time.Now()
	limited, cancel := context.WithTimeout(ctx, s.options.Duration)
	defer cancel()
	s.operator = operator{options: s.options, daemon: s.daemon, webAddr: s.webAddr}
	operated := make(chan error, 1)
	go func() {
		operated <- s.operator.runRounds(limited)
		cancel()
	}()
	err := s.sampleDaemonPeriodically(limited, begin)
	cancel()
	if err := errors.Join(err, <-operated); err != nil {
		return err
	}
	// Stop the projects, so that the metrics include every visit.
	s.duration = time.Since(begin)
	if s.options.HeapProfileFile != "" {
		if err := s.daemon.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			return err
		}
	}
	for _, project := range s.options.projects() {
		if err := s.daemon.changeProjectStateAndWait(ctx, project.ProjectName, api.ActionStop,
			api.StateStopped); err != nil {
			return err
		}
	}
	s.finalMetrics, err = s.daemon.scrapeMetrics(ctx)
	return err
}

// sampleDaemonPeriodically takes and prints samples of the daemon until ctx is done.
func (s *soakRun) sampleDaemonPeriodically(ctx context.Context, begin time.Time) error {
	var before sample
	visits := 0.0
	fmt.Fprintf(s.out, "%8s", "time")
	for _, one := range sampledSeries {
		fmt.Fprintf(s.out, " %15s", one.name)
	}
	fmt.Fprintf(s.out, " %9s %9s\n", "visits/s", "queued")
	for sleep(ctx, s.options.SampleInterval) {
		n, err := s.daemon.scrapeMetrics(context.WithoutCancel(ctx))
		if err == nil {
			err = n.addAnonymousRSS(s.daemon.cmd.Process.Pid)
		}
		if err != nil {
			return err
		}
		// The rate of visits is that since the last sample.
		now := sample{Elapsed: time.Since(begin), Queued: n.sumSeries("decorum_queued")}
		for i, one := range sampledSeries {
			now.Values[i] = one.value(n)
		}
		totalVisits := n.sumSeries("decorum_visits_total")
		now.VisitsPerSecond = (totalVisits - visits) / (now.Elapsed - before.Elapsed).Seconds()
		s.samples, before, visits = append(s.samples, now), now, totalVisits
		fmt.Fprintf(s.out, "%8s", now.Elapsed.Round(time.Second))
		for _, v := range now.Values {
			fmt.Fprintf(s.out, " %15.1f", v)
		}
		fmt.Fprintf(s.out, " %9.1f %9.0f\n", now.VisitsPerSecond, now.Queued)
	}
	return nil
}

// printAndCheckResults prints the results of the run, and returns an error for each failed check.
func (s *soakRun) printAndCheckResults() error {
	log := s.web.Log()
	visits := s.finalMetrics.sumSeries("decorum_visits_total")
	fmt.Fprintf(s.out, "\n%.0f visits in %v, %.1f a second; CPU %.1f %% of a core; %d quiet periods\n\n", visits,
		s.duration.Round(time.Second),
		visits/s.duration.Seconds(), 100*s.finalMetrics.sumSeries("process_cpu_seconds_total")/s.duration.Seconds(),
		len(s.operator.hostQuietPeriods))
	errs := []error{checkCountPairs(s.out, collectCountPairs(s.finalMetrics, log, &s.operator)),
		s.operator.checkQuietPeriods(log), s.checkPoliteness(), s.printAndCheckTrends()}
	return errors.Join(errs...)
}

// checkPoliteness checks the web's log with the judge of crawltest, and the daemon's own metric of
// delay shortfalls. It prints at most three violations of each rule.
func (s *soakRun) checkPoliteness() error {
	r := s.web.Judge(crawltest.JudgeOptions{MinDelay: s.options.Web.CrawlerDelay,
		RequiredProductToken: "soakbot", AllowRevisits: true})
	short := s.finalMetrics.sumSeries("decorum_delay_shortfall_seconds")
	fmt.Fprintf(s.out, "\nthe judge: %d violations in %d requests to %d hosts; shortfall %v s\n", len(r.Violations),
		r.Requests, len(r.Hosts), short)
	// List the first violations of each rule, and the number of all.
	var errs []error
	if !r.OK() {
		byRule := map[crawltest.JudgeRule]int{}
		for _, o := range r.Violations {
			if byRule[o.Rule]++; byRule[o.Rule] <= 3 {
				errs = append(errs, fmt.Errorf("%s: %s at %v: %s", o.Rule, o.Exchange.URL, o.Exchange.Start, o.Detail))
			}
		}
		for _, rule := range slices.Sorted(maps.Keys(byRule)) {
			errs = append(errs, fmt.Errorf("%s: %d times", rule, byRule[rule]))
		}
		if r.UnloggedRequests > 0 {
			errs = append(errs, fmt.Errorf("%d requests exceeded the size of the log", r.UnloggedRequests))
		}
	}
	if short != 0 || s.finalMetrics["decorum_delay_shortfall_seconds"] == nil {
		errs = append(errs, fmt.Errorf("the daemon reports a delay shortfall of %v s", short))
	}
	return errors.Join(errs...)
}

// printAndCheckTrends plots the sampled series, and returns an error for each that grows.
func (s *soakRun) printAndCheckTrends() error {
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\n\tfirst third\tlast third\tin 10 min\tflat\t")
	var errs []error
	for i, one := range sampledSeries {
		var values []float64
		for _, x := range s.samples {
			values = append(values, x.Values[i])
		}
		// A short run has no reliable trend.
		t := newTrend(values, s.duration)
		verdict := "yes"
		switch {
		case s.duration < slopePeriod:
			verdict = "too short to tell"
		case !t.isNotGrowing():
			verdict = "no"
			errs = append(errs, fmt.Errorf("%s: grows by %.1f %% in %v", one.name, 100*t.RelativeSlope, slopePeriod))
		}
		fmt.Fprintf(table, "%s\t%.1f %s\t%.1f %s\t%+.2f %%\t%s\t%s\n", one.name, t.FirstThirdMean, one.unit,
			t.LastThirdMean, one.unit, 100*t.RelativeSlope, verdict, sparkline(values, 60))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return errors.Join(errs...)
}
