package cli

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/storage"
)

const progressFlagUsage = "show progress in `MODE`: auto (a live line on a terminal on which nothing else prints, " +
	"else plain), plain or none"

// addQuietFlag adds --quiet to fs. It changes the defaults of --progress and --log-level, and omits the
// summary; errors are still printed.
func (a *program) addQuietFlag(fs *pflag.FlagSet) {
	fs.BoolVarP(&a.quiet, "quiet", "q", false, "print only warnings and errors: no progress and no summary")
}

// silenceProgressIfQuiet sets *mode to none with --quiet, unless --progress is given.
func (a *program) silenceProgressIfQuiet(fs *pflag.FlagSet, mode *string) {
	if a.quiet && !fs.Changed("progress") {
		*mode = "none"
	}
}

// checkProgressFlag returns a usage error unless mode is auto, plain or none.
func checkProgressFlag(mode string) error {
	return command.CheckChoice("--progress", mode, "auto", "plain", "none")
}

// A progressReporter prints the progress of a crawl. Only its run method uses it.
type progressReporter struct {
	crawlStats     func() crawler.Stats
	frontierCounts func(context.Context) (storage.Counts, error)
	limits         project.LimitSettings
	start          time.Time
	lastSample     progressSample
}

// A progressSample is the number of visited pages at a moment.
type progressSample struct {
	at    time.Time
	pages int64   // since the start
	rate  float64 // pages a second, smoothed over about 5 s
}

// run prints the progress on s until done is closed: on one line that it redraws each
// terminal.DrawInterval, else on a new line each terminal.PrintInterval.
func (p *progressReporter) run(done <-chan struct{}, s *terminal.StatusLineWriter, redraws bool) {
	interval, show := terminal.PrintInterval, func(line string) { fmt.Fprintln(s, line) }
	if redraws {
		interval, show = terminal.DrawInterval, s.DrawStatusLine
		defer s.DrawStatusLine("")
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			show(p.statusLine(context.Background(), now))
		case <-done:
			return
		}
	}
}

// statusLine returns the line of progress at the time now. It leaves out the counts of the frontier
// if they cannot be read.
func (p *progressReporter) statusLine(ctx context.Context, now time.Time) string {
	st := p.crawlStats()
	rate := p.smoothedPageRate(now, st.Pages)
	var parts []string
	if st.MachinePauseReason != "" {
		parts = append(parts, "paused: "+st.MachinePauseReason)
	}
	parts = append(parts, fmt.Sprintf("%d pages", st.Pages), fmt.Sprintf("%.1f/s", rate))
	// If the store fails, the line lacks only these counts.
	if c, err := p.frontierCounts(ctx); err == nil {
		parts = append(parts, fmt.Sprintf("hosts %d due, %d waiting", c.DueHosts, c.QueuedHosts-c.DueHosts),
			fmt.Sprintf("%d queued", c.QueuedURLs))
		if c.AwaitingRevisit > 0 {
			parts = append(parts, fmt.Sprintf("%d resting", c.AwaitingRevisit))
		}
	}
	parts = append(parts,
		fmt.Sprintf("%d blocked", st.BlockedURLs), fmt.Sprintf("%d errors", st.Errors), plaintext.FormatBytes(st.Bytes))
	if remaining, ok := p.estimatedTimeToLimit(now, st, rate); ok {
		parts = append(parts, "at most "+remaining.Round(time.Second).String()+" left")
	}
	return strings.Join(parts, ", ")
}

// smoothedPageRate returns the pages a second, smoothed over about the last 5 s. pages is the
// number of pages since the start.
func (p *progressReporter) smoothedPageRate(now time.Time, pages int64) float64 {
	if p.lastSample.at.IsZero() {
		p.lastSample = progressSample{at: p.start} // the first sample counts from the start
	}
	span := now.Sub(p.lastSample.at).Seconds()
	if span <= 0 {
		return p.lastSample.rate
	}
	latest := float64(pages-p.lastSample.pages) / span
	weight := min(1, max(span/5, span/now.Sub(p.start).Seconds())) // a mean over about 5 s
	p.lastSample = progressSample{now, pages, p.lastSample.rate + weight*(latest-p.lastSample.rate)}
	return p.lastSample.rate
}

// estimatedTimeToLimit estimates how long it takes until a limit ends the crawl; false if the crawl
// has no limit that it approaches.
func (p *progressReporter) estimatedTimeToLimit(now time.Time, st crawler.Stats, rate float64) (time.Duration, bool) {
	seconds := math.Inf(1)
	if limit := time.Duration(p.limits.Duration); limit > 0 {
		seconds = max(0, (limit - now.Sub(p.start)).Seconds())
	}
	if rate > 0 {
		seconds = min(seconds, p.pagesLeft(st)/rate)
	}
	if math.IsInf(seconds, 1) {
		return 0, false
	}
	// Estimates beyond a century, about 3e9 seconds, have no use and would overflow.
	return time.Duration(min(seconds, 3e9) * float64(time.Second)), true
}

// pagesLeft estimates how many pages the crawl can still visit under limits.pages and limits.bytes;
// infinity if it has neither. It assumes that the mean size of earlier pages holds for each page.
func (p *progressReporter) pagesLeft(st crawler.Stats) float64 {
	remaining := math.Inf(1)
	if limit := int64(p.limits.Pages); limit > 0 {
		remaining = float64(max(0, limit-st.Pages))
	}
	if limit := int64(p.limits.Bytes); limit > 0 && st.Bytes > 0 {
		remaining = min(remaining, float64(max(0, limit-st.Bytes))*float64(st.Pages)/float64(st.Bytes))
	}
	return remaining
}
