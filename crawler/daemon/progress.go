package daemon

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/storage"
)

const progressUsage = "`HOW` to show progress: auto (a live line on a terminal, else plain), plain or none"

func checkProgress(how string) error {
	switch how {
	case "auto", "plain", "none":
		return nil
	}
	return usage("--progress: %q is not one of auto, plain, none", how)
}

// A progress tells how a crawl goes.
type progress struct {
	stats  func() crawler.Stats
	counts func(context.Context) (storage.Counts, error)
	limits Limits
	start  time.Time
	last   sample
}

// A sample is how many pages there were at a moment.
type sample struct {
	at    time.Time
	pages int64
	rate  float64 // pages a second, of late
}

// How often progress is told.
const (
	drawEvery  = 500 * time.Millisecond // on a terminal
	printEvery = 10 * time.Second       // elsewhere
)

// run tells the progress on s until over is closed: on a line drawn over, or line
// by line.
func (p *progress) run(over <-chan struct{}, s *screen, drawn bool) {
	every, tell := printEvery, func(line string) { fmt.Fprintln(s, line) }
	if drawn {
		every, tell = drawEvery, s.draw
		defer s.draw("")
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			tell(p.statusLine(context.Background(), now))
		case <-over:
			return
		}
	}
}

// statusLine says how the crawl stands at now.
func (p *progress) statusLine(ctx context.Context, now time.Time) string {
	st := p.stats()
	rate := p.rate(now, st.Pages)
	var parts []string
	if st.MachinePauseReason != "" {
		parts = append(parts, "paused: "+st.MachinePauseReason)
	}
	parts = append(parts, fmt.Sprintf("%d pages", st.Pages), fmt.Sprintf("%.1f/s", rate))
	if c, err := p.counts(ctx); err == nil {
		parts = append(parts, fmt.Sprintf("hosts %d due, %d waiting", c.Due, c.Hosts-c.Due), fmt.Sprintf("%d queued", c.Queued))
		if c.Resting > 0 {
			parts = append(parts, fmt.Sprintf("%d resting", c.Resting))
		}
	}
	parts = append(parts,
		fmt.Sprintf("%d blocked", st.Blocked), fmt.Sprintf("%d errors", st.Errors), approximate(st.Bytes))
	if left, ok := p.left(now, st, rate); ok {
		parts = append(parts, "at most "+left.Round(time.Second).String()+" left")
	}
	return strings.Join(parts, ", ")
}

// rate returns the pages a second since the beginning, with the last moments
// counting most.
func (p *progress) rate(now time.Time, pages int64) float64 {
	if p.last.at.IsZero() {
		p.last = sample{at: p.start}
	}
	span := now.Sub(p.last.at).Seconds()
	if span <= 0 {
		return p.last.rate
	}
	latest := float64(pages-p.last.pages) / span
	weight := min(1, max(span/5, span/now.Sub(p.start).Seconds())) // a mean over about 5 s
	p.last = sample{now, pages, p.last.rate + weight*(latest-p.last.rate)}
	return p.last.rate
}

// left estimates when a limit will end the crawl; false if none will.
func (p *progress) left(now time.Time, st crawler.Stats, rate float64) (time.Duration, bool) {
	left, ok := time.Duration(0), false
	if limit := time.Duration(p.limits.Duration); limit > 0 {
		left, ok = max(0, limit-now.Sub(p.start)), true
	}
	if pages, limited := p.pagesLeft(st); limited && rate > 0 {
		// Beyond a century the estimate says nothing, and would overflow.
		seconds := min(pages/rate, 3e9)
		byPages := time.Duration(seconds * float64(time.Second))
		if !ok || byPages < left {
			left, ok = byPages, true
		}
	}
	return left, ok
}

// pagesLeft estimates how many pages the limits of pages and of bytes leave;
// false if there is no such limit.
func (p *progress) pagesLeft(st crawler.Stats) (left float64, limited bool) {
	left = math.Inf(1)
	if limit := int64(p.limits.Pages); limit > 0 {
		left = float64(max(0, limit-st.Pages))
	}
	if limit := int64(p.limits.Bytes); limit > 0 && st.Bytes > 0 {
		left = min(left, float64(max(0, limit-st.Bytes))*float64(st.Pages)/float64(st.Bytes))
	}
	return left, !math.IsInf(left, 1)
}

// approximate writes a number of bytes for people.
func approximate(n int64) string {
	x, unit := float64(n), "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if x < 1024 {
			break
		}
		x, unit = x/1024, larger
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", x, unit)
}
