package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/plaintext"
)

// summaryText says what the run has done, how it ended, and what is left and why.
func (j *foregroundRun) summaryText(ctx context.Context, runErr error) string {
	st := j.Crawler.Stats()
	var b strings.Builder
	fmt.Fprintf(&b, "pages: %d (%s), hosts: %d, time: %s, robots.txt: %d, sitemaps: %d\n",
		st.Pages, plaintext.FormatBytes(st.Bytes), j.visitedHosts.count(), time.Since(j.startedAt).Round(10*time.Millisecond), st.RobotsFetches, st.SitemapFetches)
	fmt.Fprintf(&b, "errors: %d, retries: %d, given up: %d, blocked by robots.txt: %d, out of scope: %d\n",
		st.Errors, st.Retries, st.GivenUp, st.BlockedURLs, j.RefusalReporter.RefusedURLCount.Load())
	if failures := failureCountsText(st); failures != "" {
		fmt.Fprintf(&b, "failed visits: %s\n", failures)
	}
	if st.LocalFaults > 0 {
		fmt.Fprintf(&b, "failed on this machine, and made again: %d visits\n", st.LocalFaults)
	}
	if refused := refusalCountsText(j.Frontier.RefusalsByReason()); refused != "" {
		fmt.Fprintf(&b, "out of scope, by reason: %s\n", refused)
	}
	if st.PagesWithheld > 0 {
		fmt.Fprintf(&b, "not used: %d pages whose site asks not to use them for %s; their content was not kept\n",
			st.PagesWithheld, strings.Join(j.Project.Robots.Purposes, ", "))
	}
	if st.TDMRepFetches > 0 {
		fmt.Fprintf(&b, "tdmrep.json: %d\n", st.TDMRepFetches)
	}
	if st.Redirects > 0 {
		fmt.Fprintf(&b, "redirects: %d, of them to new URLs: %d\n", st.Redirects, st.RedirectsToNewURLs)
	}
	if st.NonCanonical+st.DuplicateBodies > 0 {
		fmt.Fprintf(&b, "duplicates: %d with the body of another page, %d naming another URL as canonical\n", st.DuplicateBodies, st.NonCanonical)
	}
	if st.HTTPSUpgrades > 0 {
		fmt.Fprintf(&b, "links to http taken for https: %d\n", st.HTTPSUpgrades)
	}
	if st.Revisits > 0 {
		fmt.Fprintf(&b, "revisits: %d, unchanged (sitemaps too): %d, recalled by sitemaps: %d\n", st.Revisits, st.Unchanged, st.RescheduledBySitemap)
	}
	if st.Panics > 0 {
		fmt.Fprintf(&b, "callbacks that panicked: %d; the log says where\n", st.Panics)
	}
	c, err := j.Stores.Frontier.Counts(ctx)
	switch {
	case err != nil:
		fmt.Fprintf(&b, "what is left is not known: %v\n", err)
	case c.SuspendedURLs > 0:
		fmt.Fprintf(&b, "left: %d queued, %d of them on hosts that do not answer, ask for too long a delay or have had their pages\n", c.QueuedURLs, c.SuspendedURLs)
	default:
		fmt.Fprintf(&b, "left: %d queued\n", c.QueuedURLs)
	}
	if c.AwaitingRevisit > 0 {
		fmt.Fprintf(&b, "resting until their revisit: %d%s\n", c.AwaitingRevisit, firstRevisitText(runErr))
	}
	if c.ParkedURLs > 0 {
		fmt.Fprintf(&b, "set aside: %d that robots.txt or the scope closes, until that changes\n", c.ParkedURLs)
	}
	return b.String()
}

// failureCountsText says how many visits failed, class by class; nothing if none did.
func failureCountsText(st crawler.Stats) string {
	var classes []string
	for class, n := range st.Failures {
		if n > 0 {
			classes = append(classes, fmt.Sprintf("%v %d", crawler.FailureClass(class), n))
		}
	}
	return strings.Join(classes, ", ")
}

// refusalCountsText says how often URLs were refused, reason by reason; nothing if none
// was.
func refusalCountsText(refused map[frontier.RefusalReason]int64) string {
	var reasons []string
	for _, r := range slices.Sorted(maps.Keys(refused)) {
		reasons = append(reasons, fmt.Sprintf("%s %d", r, refused[r]))
	}
	return strings.Join(reasons, ", ")
}

// firstRevisitText says when the first revisit is due, if the crawl has ended for that.
func firstRevisitText(runErr error) string {
	var awaiting *frontier.OnlyRevisitsLeftError
	if !errors.As(runErr, &awaiting) {
		return ""
	}
	return ", the first is due at " + awaiting.FirstRevisit.Local().Format(time.RFC3339)
}

// exitErrorFor turns the end of a run into an exit.
func (j *foregroundRun) exitErrorFor(runErr error) error {
	for _, stop := range []error{engine.ErrTimeLimit, engine.ErrInterrupted, crawler.ErrPages, crawler.ErrBytes} {
		if errors.Is(runErr, stop) {
			return &command.ExitError{Code: command.ExitStopped, Err: fmt.Errorf("stopped: %w. Nothing is lost; to go on:\n  %s", runErr, j.resumeCommand())}
		}
	}
	switch {
	case runErr == nil, errors.Is(runErr, frontier.ErrOnlyRevisitsLeft):
		return nil
	case errors.Is(runErr, frontier.ErrOnlySuspendedLeft) && (j.Crawler.Stats().Pages > 0 || j.mayHaveReachedHostLimits()):
		return nil
	case errors.Is(runErr, frontier.ErrOnlySuspendedLeft):
		return runErr
	}
	return &command.ExitError{Code: command.ExitFailed, Err: fmt.Errorf("%w\nWhat was written is kept; when the cause is removed, go on with:\n  %s", runErr, j.resumeCommand())}
}

// mayHaveReachedHostLimits reports whether a run without visits may have used up its pages, or its
// bytes, in an earlier run.
func (j *foregroundRun) mayHaveReachedHostLimits() bool {
	return j.isResumed && (j.Project.Scope.MaxPagesPerHost > 0 || j.Project.Scope.MaxBytesPerHost > 0)
}

// resumeCommand returns the command that goes on with the crawl.
func (j *foregroundRun) resumeCommand() string {
	command := "decorum"
	if j.Project.Handler != "" {
		command = "(this program)" // another has not its callbacks
	}
	return command + " crawl --resume --data " + shellQuote(j.Project.Store.Path)
}

// shellQuote returns name as a shell takes it for one word.
func shellQuote(name string) string {
	if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./,:+@%=-") == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
