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
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/politeness"
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
	recentDelays   *recentDelays // nil: unknown
	heldHosts      func(context.Context) (inspect.HeldHosts, error)
	lastHeld       heldHostsSample
	limits         project.LimitSettings
	start          time.Time
	lastSample     progressSample
}

// A heldHostsSample is the text of heldHostsText at a moment.
type heldHostsSample struct {
	at     time.Time
	text   string
	until  time.Time // inspect.HeldHosts.Until
	others bool      // inspect.HeldHosts.Others
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
	// If the store fails, the line lacks only these counts, and what follows from them.
	c, err := p.frontierCounts(ctx)
	if err == nil {
		parts = append(parts, fmt.Sprintf("hosts %d due, %d waiting", c.DueHosts, c.QueuedHosts-c.DueHosts),
			fmt.Sprintf("%d queued", c.QueuedURLs))
		if c.AwaitingRevisit > 0 {
			parts = append(parts, fmt.Sprintf("%d resting", c.AwaitingRevisit))
		}
	}
	parts = append(parts,
		fmt.Sprintf("%d blocked", st.BlockedURLs), fmt.Sprintf("%d errors", st.Errors), plaintext.FormatBytes(st.Bytes))
	held := p.heldHostsText(ctx, now, c)
	if held != "" {
		parts = append(parts, held)
	}
	// The delay of the latest visits says nothing while all hosts are held.
	if pace := p.paceText(now, c); pace != "" && (held == "" || p.lastHeld.others) {
		parts = append(parts, pace)
	}
	var heldFor time.Duration // how long no host may be visited
	if held != "" && !p.lastHeld.others {
		heldFor = p.lastHeld.until.Sub(now)
	}
	if left := p.timeLeftText(now, st, rate, c, heldFor); left != "" {
		parts = append(parts, left)
	}
	return strings.Join(parts, ", ")
}

// heldHostsInterval is how often the frontier is read for heldHostsText, at most.
const heldHostsInterval = 5 * time.Second

// maxOriginsRead is how many origins heldHostsText reads.
const maxOriginsRead = 1000

// heldHostsText returns which hosts wait for longer than their delay, and why, such as "1 host held until
// 12:03:00 by status 503". It returns "" unless every host with queued URLs waits, one of them so.
func (p *progressReporter) heldHostsText(ctx context.Context, now time.Time, c storage.Counts) string {
	if c.QueuedHosts == 0 || c.DueHosts > 0 || p.heldHosts == nil {
		return ""
	}
	if !p.lastHeld.at.IsZero() && now.Sub(p.lastHeld.at) < heldHostsInterval {
		return p.lastHeld.text
	}
	p.lastHeld = heldHostsSample{at: now}
	h, err := p.heldHosts(ctx)
	if err != nil || h.Count == 0 { // the line lacks only this text
		return ""
	}
	count, until := countText(int64(h.Count), "host"), h.Until.Local().Format(time.TimeOnly)
	if h.More {
		count = "at least " + count
	}
	if h.Until.Sub(now) > 12*time.Hour {
		until = h.Until.Local().Format(time.DateTime)
	}
	if h.Count > 1 {
		until += " at the earliest"
	}
	p.lastHeld.until, p.lastHeld.others = h.Until, h.Others
	p.lastHeld.text = fmt.Sprintf("%s held until %s", count, until)
	if h.Reason != "" {
		p.lastHeld.text += " by " + h.Reason
	}
	return p.lastHeld.text
}

// paceText returns what limits the pace of the crawl, such as "1s a host by --delay". It returns "" unless
// every host with queued URLs rests.
func (p *progressReporter) paceText(now time.Time, c storage.Counts) string {
	if c.QueuedHosts == 0 || c.DueHosts > 0 || p.recentDelays == nil {
		return ""
	}
	delay, reason := p.recentDelays.mostFrequent(now)
	if delay == 0 {
		return ""
	}
	cause := string(reason)
	switch reason {
	case politeness.ConfiguredDelay:
		cause = "--delay"
	case politeness.AdaptiveDelay:
		cause = "politeness.adaptive"
	}
	return fmt.Sprintf("%v a host by %s", roundDelay(delay), cause)
}

// roundDelay rounds d for people.
func roundDelay(d time.Duration) time.Duration {
	if d > 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(10 * time.Millisecond)
}

// timeLeftText says how long the crawl takes at least, for the URLs that are queued and while all hosts are
// held, and at most, until a limit; "" if neither is known.
func (p *progressReporter) timeLeftText(now time.Time, st crawler.Stats, rate float64, c storage.Counts,
	heldFor time.Duration) string {
	atLeast := max(p.leastTimeForQueue(now, c), heldFor).Round(time.Second)
	atMost, ok := p.estimatedTimeToLimit(now, st, rate)
	atMost = atMost.Round(time.Second)
	switch {
	case ok && atLeast > 0 && atLeast < atMost:
		return fmt.Sprintf("%v to %v left", atLeast, atMost)
	case ok:
		return fmt.Sprintf("at most %v left", atMost)
	case atLeast > 0:
		return fmt.Sprintf("at least %v left", atLeast)
	}
	return ""
}

// leastTimeForQueue returns a lower bound of the time that the queued URLs take at the present delay: the
// longest queue of a host is at least the mean. It returns 0 if the delay is unknown.
func (p *progressReporter) leastTimeForQueue(now time.Time, c storage.Counts) time.Duration {
	urls := c.QueuedURLs - c.SuspendedURLs
	if c.QueuedHosts == 0 || urls <= 0 || p.recentDelays == nil {
		return 0
	}
	longestQueue := (urls + c.QueuedHosts - 1) / c.QueuedHosts
	// Estimates beyond a century have no use and would overflow.
	return time.Duration(min(float64(longestQueue)*float64(p.recentDelays.shortest(now)), 3e18))
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
