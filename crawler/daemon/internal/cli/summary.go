package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/storage"
)

// printSummary writes the summary that ends a run, as text or as one record, unless it is quiet.
func (a *program) printSummary(ctx context.Context, j *foregroundRun, runErr error) {
	if a.quiet {
		return
	}
	if a.JSONMessages != nil {
		a.JSONMessages.Info("the run has ended", j.summaryFields(ctx, runErr)...)
		return
	}
	fmt.Fprint(a.Stderr, j.summaryText(ctx, runErr))
}

// summaryFields returns the fields of the record that ends a run. Counts that api.ProjectStats and
// api.FrontierCounts have, too, have the same names; those of ProjectStats are of this run.
func (j *foregroundRun) summaryFields(ctx context.Context, runErr error) []any {
	st := j.Crawler.Stats()
	failures := map[string]int64{}
	for class, n := range st.Failures {
		if n > 0 {
			failures[crawler.FailureClass(class).String()] = n
		}
	}
	fields := []any{"pages", st.Pages, "bytes", st.Bytes, "requests", st.Requests,
		"wire_bytes_sent", st.WireBytesSent, "wire_bytes_received", st.WireBytesReceived,
		"connections", st.Connections, "full_handshakes", st.FullHandshakes,
		"resumed_handshakes", st.ResumedHandshakes, "not_modified", st.NotModified,
		"saved_by_compression", st.SavedByCompression, "saved_by_revalidation", st.SavedByRevalidation,
		"visited_hosts", j.visitedHosts.count(),
		"duration_ms", time.Since(j.startedAt).Milliseconds(), "robots", st.RobotsFetches,
		"sitemaps", st.SitemapFetches, "tdmrep", st.TDMRepFetches, "errors", st.Errors,
		"failures_by_class", failures, "retries", st.Retries, "given_up", st.GivenUp, "local", st.LocalFaults,
		"stale_connections", st.StaleConns,
		"panics", st.Panics, "blocked", st.BlockedURLs, "refused_urls", j.RefusalReporter.RefusedURLCount.Load(),
		"refused_by_reason", j.Frontier.RefusalsByReason(), "withheld", st.PagesWithheld, "redirects", st.Redirects,
		"redirects_to_new", st.RedirectsToNewURLs, "duplicates", st.DuplicateBodies,
		"non_canonical", st.NonCanonical, "nofollow_links", st.NoFollowLinks, "pages_to_render", st.PagesToRender,
		"https_upgrades", st.HTTPSUpgrades, "revisits", st.Revisits,
		"unchanged", st.Unchanged, "rescheduled_by_sitemap", st.RescheduledBySitemap}
	if awaiting, ok := errors.AsType[*frontier.OnlyRevisitsLeftError](runErr); ok {
		fields = append(fields, "first_revisit", awaiting.FirstRevisit)
	}
	fields = append(fields, "output_lines_by_status", lineCountsByStatus(j.output.LineCounts()))
	if j.keepsNothing(runErr) {
		fields = append(fields, "keeps_nothing", true) // not even the output
	} else {
		fields = append(fields, j.outputFields()...)
	}
	if limit := j.exhaustedLimit(runErr); limit != "" {
		fields = append(fields, "limit", limit, "continue_with", j.resumeCommand())
	}
	c, err := j.Stores.Frontier.Counts(ctx)
	if err != nil {
		return append(fields, "left_error", err.Error())
	}
	fields = append(fields, "queued", c.QueuedURLs, "dormant", c.SuspendedURLs, "parked", c.ParkedURLs,
		"resting", c.AwaitingRevisit)
	if hosts, _ := j.suspendedHosts(ctx, c); len(hosts) > 0 {
		fields = append(fields, "set_aside", hosts)
	}
	return fields
}

// summaryText returns the summary that ends a run: what it has done, what failed or was refused,
// and which URLs are left and why. Lines whose counts are all zero are left out.
func (j *foregroundRun) summaryText(ctx context.Context, runErr error) string {
	st := j.Crawler.Stats()
	var s reporttext.Builder
	s.WriteLine("pages: %d (%s), hosts: %d, time: %s, robots.txt: %d, sitemaps: %d",
		st.Pages, plaintext.FormatBytes(st.Bytes), j.visitedHosts.count(),
		time.Since(j.startedAt).Round(10*time.Millisecond), st.RobotsFetches, st.SitemapFetches)
	traffic := api.HostTraffic(st.HostTraffic)
	s.WriteLineIf(traffic.Requests > 0, "traffic: %d requests, %s", traffic.Requests, reporttext.TrafficText(&traffic))
	s.WriteLineIf(traffic.SavedByCompression+traffic.NotModified > 0, "saved: %s", reporttext.SavedBytesText(&traffic))
	status := statusCountsText(j.output.LineCounts())
	s.WriteLineIf(status != "", "status: %s", status)
	s.WriteLine("errors: %d, retries: %d, given up: %d, blocked by robots.txt: %d, out of scope: %d",
		st.Errors, st.Retries, st.GivenUp, st.BlockedURLs, j.RefusalReporter.RefusedURLCount.Load())
	failures, refused := failureCountsText(st), refusalCountsText(j.Frontier.RefusalsByReason())
	s.WriteLineIf(failures != "", "failed visits: %s", failures)
	s.WriteLineIf(st.LocalFaults > 0, "failed on this machine, and repeated: %d visits", st.LocalFaults)
	s.WriteLineIf(st.StaleConns > 0, "repeated, as the server closed a kept connection: %d visits", st.StaleConns)
	s.WriteLineIf(refused != "", "out of scope, by reason: %s", refused)
	s.WriteLineIf(st.NoFollowLinks > 0, "not followed: %d links that pages ask robots not to follow (nofollow)",
		st.NoFollowLinks)
	s.WriteLineIf(st.PagesToRender == 1, "1 page has no links and a mount point for scripts: it needs rendering")
	s.WriteLineIf(st.PagesToRender > 1, "%d pages have no links and a mount point for scripts: they need rendering",
		st.PagesToRender)
	s.WriteLineIf(st.PagesWithheld > 0,
		"not used: %d pages whose site does not permit %s; their content was not kept",
		st.PagesWithheld, strings.Join(j.Project.Robots.Purposes, ", "))
	s.WriteLineIf(st.TDMRepFetches > 0, "tdmrep.json: %d", st.TDMRepFetches)
	s.WriteLineIf(st.Redirects > 0, "redirects: %d, of them to new URLs: %d", st.Redirects, st.RedirectsToNewURLs)
	s.WriteLineIf(st.NonCanonical+st.DuplicateBodies > 0,
		"duplicates: %d with the body of another page, %d naming another URL as canonical",
		st.DuplicateBodies, st.NonCanonical)
	s.WriteLineIf(st.HTTPSUpgrades > 0, "links to http upgraded to https: %d", st.HTTPSUpgrades)
	s.WriteLineIf(st.Revisits > 0, "revisits: %d, unchanged (including sitemaps): %d, scheduled earlier by "+
		"sitemaps: %d",
		st.Revisits, st.Unchanged, st.RescheduledBySitemap)
	s.WriteLineIf(st.Panics > 0, "callbacks that panicked: %d; the log says where", st.Panics)
	// What is left for another run.
	c, err := j.Stores.Frontier.Counts(ctx)
	switch {
	case err != nil:
		s.WriteLine("left: unknown: %v", err)
	case c.SuspendedURLs > 0:
		s.WriteLine("left: %d queued, %d of them on hosts that do not answer, may not be visited, require too long "+
			"a delay or have reached a limit",
			c.QueuedURLs, c.SuspendedURLs)
		j.writeSuspendedHosts(ctx, &s, c)
	default:
		s.WriteLine("left: %d queued", c.QueuedURLs)
	}
	s.WriteLineIf(c.AwaitingRevisit > 0, "resting until their revisit: %d%s",
		c.AwaitingRevisit, firstRevisitText(runErr))
	s.WriteLineIf(c.ParkedURLs > 0, "parked: %d that robots.txt disallows or the scope excludes, until that changes",
		c.ParkedURLs)
	s.WriteLineIf(j.isResumed && runErr == nil && c.QueuedURLs == 0 && !j.Crawler.HasSent(),
		"nothing was left to visit; --fresh starts a new crawl")
	s.WriteLineIf(j.keepsNothing(runErr), "no request was sent, so %s keeps nothing of this run",
		j.Project.Store.Path)
	j.writeOutputPaths(&s)
	if limit := j.exhaustedLimit(runErr); limit != "" {
		s.WriteLine("stopped: %v (%s). To continue:\n  %s", runErr, limit, j.resumeCommand())
	}
	return s.String()
}

// failureCountsText lists the failure classes with the number of their failed visits; empty if no
// visit failed.
func failureCountsText(st crawler.Stats) string {
	var classes []string
	for class, n := range st.Failures {
		if n > 0 {
			classes = append(classes, fmt.Sprintf("%v %d", crawler.FailureClass(class), n))
		}
	}
	return strings.Join(classes, ", ")
}

// refusalCountsText lists the reasons of refusals with the number of refused URLs; empty if no URL
// was refused.
func refusalCountsText(refused map[frontier.RefusalReason]int64) string {
	var reasons []string
	for _, r := range slices.Sorted(maps.Keys(refused)) {
		reasons = append(reasons, fmt.Sprintf("%s %d", r, refused[r]))
	}
	return strings.Join(reasons, ", ")
}

// firstRevisitText says when the first revisit is due if the crawl ended because only revisits are
// left; else it returns "".
func firstRevisitText(runErr error) string {
	awaiting, ok := errors.AsType[*frontier.OnlyRevisitsLeftError](runErr)
	if !ok {
		return ""
	}
	return ", the first is due at " + awaiting.FirstRevisit.Local().Format(time.RFC3339)
}

// exitErrorFor turns the error that ended a run into the command's error, which carries the exit
// code and, where the crawl can continue, the command that does it. noPageErr is that of errNoPage.
func (j *foregroundRun) exitErrorFor(runErr, noPageErr error) error {
	// A reader that wants no more, such as head: a visit whose line was not written is repeated, but the
	// lines that were in the pipe are lost.
	if errors.Is(runErr, sinks.ErrReaderLeft) {
		return &command.ExitError{Code: command.ExitStopped,
			Err: fmt.Errorf("stopped: %w. Lines that the reader did not read are not written again; to keep all "+
				"lines, use --output FILE. To continue:\n  %s", runErr, j.resumeCommand())}
	}
	// The limit of time or a signal: the crawl is healthy and can continue.
	for _, stop := range []error{engine.ErrTimeLimit, engine.ErrInterrupted} {
		if errors.Is(runErr, stop) {
			return &command.ExitError{Code: command.ExitStopped,
				Err: fmt.Errorf("stopped: %w. Nothing is lost; to continue:\n  %s", runErr, j.resumeCommand())}
		}
	}
	// Done, or only suspended hosts are left: that is a failure if the crawl got no page at all.
	switch {
	case j.exhaustedLimit(runErr) != "":
		return nil // the summary names the limit
	case runErr == nil, errors.Is(runErr, frontier.ErrOnlyRevisitsLeft):
		return noPageErr
	case errors.Is(runErr, frontier.ErrOnlySuspendedLeft) &&
		(j.Crawler.Stats().Pages > 0 || j.mayHaveReachedHostLimits() || j.onlyDeadTwinsLeft):
		return noPageErr
	case errors.Is(runErr, frontier.ErrOnlySuspendedLeft):
		return errors.Join(runErr, noPageErr)
	}
	return j.newFailedError(runErr)
}

// errNoPage returns an error with the reasons if seeds of this run failed, and no run of the crawl has
// found a page. It returns nil if runErr, the error that ended the run, is a limit, a signal or a failure.
func (j *foregroundRun) errNoPage(ctx context.Context, runErr error) error {
	if runErr != nil && !errors.Is(runErr, frontier.ErrOnlyRevisitsLeft) &&
		!errors.Is(runErr, frontier.ErrOnlySuspendedLeft) {
		return nil
	}
	failures := j.seeds.Failures()
	if len(failures) == 0 {
		return nil
	}
	if found, err := crawler.HasFoundPage(ctx, j.Stores.Frontier); found || err != nil {
		return err
	}
	return errors.New("no seed led to a page:\n  " + strings.Join(failures, "\n  "))
}

// newFailedError returns the error of a run that failed.
func (j *foregroundRun) newFailedError(err error) error {
	return &command.ExitError{Code: command.ExitFailed,
		Err: fmt.Errorf("%w\nWhat was written is kept. Remove the cause, then continue with:\n  %s",
			err, j.resumeCommand())}
}

// exhaustedLimit returns the field and the value of the limit on the amount of work that ended the run;
// "" if the run ended for another reason. Such an end is the one that the user chose, so it is no failure.
// The limit of time is none of them: it cuts a run off at an arbitrary point.
func (j *foregroundRun) exhaustedLimit(runErr error) string {
	switch {
	case errors.Is(runErr, crawler.ErrPages):
		return fmt.Sprintf("limits.pages: %d", j.Project.Limits.Pages)
	case errors.Is(runErr, crawler.ErrBytes):
		return "limits.bytes: " + plaintext.FormatBytes(int64(j.Project.Limits.Bytes))
	}
	return ""
}

// sentNothing reports whether the run ended by itself and sent no request, because no host could be found
// or none may be visited. After a signal or the limit of time the queue is kept for --resume.
func (j *foregroundRun) sentNothing(runErr error) bool {
	endedByItself := runErr == nil || errors.Is(runErr, frontier.ErrOnlySuspendedLeft)
	return endedByItself && !j.Crawler.HasSent()
}

// keepsNothing reports whether the files of the run are removed.
func (j *foregroundRun) keepsNothing(runErr error) bool {
	return j.removesNewFiles && j.sentNothing(runErr)
}

// mayHaveReachedHostLimits reports whether earlier runs may have used up scope.max_pages_per_host
// or scope.max_bytes_per_host, so that a run without visits is not a failure.
func (j *foregroundRun) mayHaveReachedHostLimits() bool {
	return j.isResumed && (j.Project.Scope.MaxPagesPerHost > 0 || j.Project.Scope.MaxBytesPerHost > 0)
}

// areOnlyDeadTwinsLeft reports whether each origin with URLs in its queue is a dead twin. It returns false
// if it cannot know, or if there are more than 1,000 such origins.
func (j *foregroundRun) areOnlyDeadTwinsLeft(ctx context.Context) bool {
	var left []decorum.Origin
	err := j.Stores.Frontier.Origins(ctx, func(o storage.OriginInfo) bool {
		if o.QueuedURLs > 0 {
			left = append(left, o.Origin)
		}
		return len(left) <= 1000
	})
	if err != nil || len(left) > 1000 {
		return false
	}
	for _, o := range left {
		if isDead, err := crawler.IsDeadTwin(ctx, j.Gate, o); err != nil || !isDead {
			return false
		}
	}
	return true
}

// resumeCommand returns the command line that continues the crawl.
func (j *foregroundRun) resumeCommand() string {
	command := "decorum"
	if j.Project.Handler != "" {
		command = "(this program)" // the decorum command lacks its callbacks
	}
	return command + " crawl --resume --data " + plaintext.ShellQuote(j.Project.Store.Path)
}
