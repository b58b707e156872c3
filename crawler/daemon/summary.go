package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/frontier"
)

// summary says what the run has done, how it ended, and what is left and why.
func (j *job) summary(ctx context.Context, end error) string {
	st := j.crawler.Stats()
	var b strings.Builder
	fmt.Fprintf(&b, "pages: %d (%s), hosts: %d, time: %s, robots.txt: %d, sitemaps: %d\n",
		st.Pages, approximate(st.Bytes), j.hosts.count(), time.Since(j.start).Round(10*time.Millisecond), st.RobotsFetched, st.SitemapsFetched)
	fmt.Fprintf(&b, "errors: %d, retries: %d, given up: %d, blocked by robots.txt: %d, out of scope: %d\n",
		st.Errors, st.Retries, st.GivenUp, st.Blocked, j.outside.count.Load())
	if failed := failures(st); failed != "" {
		fmt.Fprintf(&b, "failed visits: %s\n", failed)
	}
	if st.LocalFaults > 0 {
		fmt.Fprintf(&b, "failed on this machine, and made again: %d visits\n", st.LocalFaults)
	}
	if refused := sightings(j.frontier.Refusals()); refused != "" {
		fmt.Fprintf(&b, "out of scope, by reason: %s\n", refused)
	}
	if st.PagesWithheld > 0 {
		fmt.Fprintf(&b, "not used: %d pages whose site asks not to use them for %s; their content was not kept\n",
			st.PagesWithheld, strings.Join(j.project.Robots.Purpose, ", "))
	}
	if st.TDMRepsFetched > 0 {
		fmt.Fprintf(&b, "tdmrep.json: %d\n", st.TDMRepsFetched)
	}
	if st.Redirects > 0 {
		fmt.Fprintf(&b, "redirects: %d, of them to new URLs: %d\n", st.Redirects, st.RedirectsNew)
	}
	if st.NonCanonical+st.DuplicateBodies > 0 {
		fmt.Fprintf(&b, "duplicates: %d with the body of another page, %d naming another URL as canonical\n", st.DuplicateBodies, st.NonCanonical)
	}
	if st.HTTPSUpgraded > 0 {
		fmt.Fprintf(&b, "links to http taken for https: %d\n", st.HTTPSUpgraded)
	}
	if st.Revisits > 0 {
		fmt.Fprintf(&b, "revisits: %d, unchanged (sitemaps too): %d, recalled by sitemaps: %d\n", st.Revisits, st.Unchanged, st.Rescheduled)
	}
	if st.Panics > 0 {
		fmt.Fprintf(&b, "callbacks that panicked: %d; the log says where\n", st.Panics)
	}
	c, err := j.frontier.Counts(ctx)
	switch {
	case err != nil:
		fmt.Fprintf(&b, "what is left is not known: %v\n", err)
	case c.Dormant > 0:
		fmt.Fprintf(&b, "left: %d queued, %d of them on hosts that do not answer, ask for too long a delay or have had their pages\n", c.Queued, c.Dormant)
	default:
		fmt.Fprintf(&b, "left: %d queued\n", c.Queued)
	}
	if c.Resting > 0 {
		fmt.Fprintf(&b, "resting until their revisit: %d%s\n", c.Resting, firstDue(end))
	}
	if c.Parked > 0 {
		fmt.Fprintf(&b, "set aside: %d that robots.txt or the scope closes, until that changes\n", c.Parked)
	}
	return b.String()
}

// failures says how many visits failed, class by class; nothing if none did.
func failures(st crawler.Stats) string {
	var classes []string
	for class, n := range st.Failures {
		if n > 0 {
			classes = append(classes, fmt.Sprintf("%v %d", crawler.FailureClass(class), n))
		}
	}
	return strings.Join(classes, ", ")
}

// sightings says how often URLs were refused, reason by reason; nothing if none
// was.
func sightings(refused map[frontier.Reason]int64) string {
	var reasons []string
	for _, r := range slices.Sorted(maps.Keys(refused)) {
		reasons = append(reasons, fmt.Sprintf("%s %d", r, refused[r]))
	}
	return strings.Join(reasons, ", ")
}

// firstDue says when the first revisit is due, if the crawl has ended for that.
func firstDue(end error) string {
	var resting *frontier.RestingError
	if !errors.As(end, &resting) {
		return ""
	}
	return ", the first is due at " + resting.First.Local().Format(time.RFC3339)
}

// ending turns the end of a run into an exit.
func (j *job) ending(end error) error {
	for _, stop := range []error{errTime, errSignal, crawler.ErrPages, crawler.ErrBytes} {
		if errors.Is(end, stop) {
			return &exit{ExitStopped, fmt.Errorf("stopped: %w. Nothing is lost; to go on:\n  %s", end, j.goOn())}
		}
	}
	switch {
	case end == nil, errors.Is(end, frontier.ErrResting):
		return nil
	case errors.Is(end, frontier.ErrDormant) && (j.crawler.Stats().Pages > 0 || j.hadPages()):
		return nil
	case errors.Is(end, frontier.ErrDormant):
		return end
	}
	return &exit{ExitFailed, fmt.Errorf("%w\nWhat was written is kept; when the cause is removed, go on with:\n  %s", end, j.goOn())}
}

// hadPages reports whether a run without visits may have used up its pages, or its
// bytes, in an earlier run.
func (j *job) hadPages() bool {
	return j.goesOn && (j.project.Scope.MaxPagesPerHost > 0 || j.project.Scope.MaxBytesPerHost > 0)
}

// goOn returns the command that goes on with the crawl.
func (j *job) goOn() string {
	command := "decorum"
	if j.project.Handler != "" {
		command = "(this program)" // another has not its callbacks
	}
	return command + " crawl --resume --data " + quote(j.project.Store.Path)
}

// quote returns name as a shell takes it for one word.
func quote(name string) string {
	if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./,:+@%=-") == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
