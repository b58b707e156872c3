package crawltest

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// A pace is what the judge remembers of a host from request to request.
type pace struct {
	going   []Exchange    // not ended when the last request came
	ended   Exchange      // whose answer ended last
	pausing time.Duration // the Retry-After of the answer that asks to wait longest,
	paused  Exchange      // and that answer
	spared  time.Time     // when the last such answer came that died with the crawler
}

// settle lets the answers end that had done so when a request came.
func (p *pace) settle(at time.Time, tolerance func(Exchange) time.Duration) {
	p.going = slices.DeleteFunc(p.going, func(x Exchange) bool {
		if x.End.IsZero() || x.End.After(at.Add(tolerance(x))) {
			return false
		}
		if x.End.After(p.ended.End) {
			p.ended = x
		}
		if pause := pauseAfter(x); x.End.Add(pause).After(p.paused.End.Add(p.pausing)) {
			p.paused, p.pausing = x, pause
		}
		return true
	})
}

// pauseAfter returns how long an answer asks everybody to stay away.
func pauseAfter(x Exchange) time.Duration {
	if x.Status == http.StatusTooManyRequests || x.Status == http.StatusServiceUnavailable {
		return x.RetryAfter
	}
	return 0
}

// examinePace asks whether the host was owed a rest, and how many requests it
// had at a time.
func (h *hearing) examinePace(x Exchange, isRobotsFetch bool) {
	p := &h.pace
	p.settle(x.Start, h.tolerance)
	declared := h.declared(x, isRobotsFetch)
	owed := max(h.opts.MinDelay, declared)
	h.host.Owed = max(h.host.Owed, owed)
	allowed := 1
	if h.site != nil && declared == 0 {
		allowed = max(1, h.site.Concurrency)
	}
	if n := len(p.going) + 1; n > allowed {
		h.blame(Overlap, x, fmt.Sprintf("%d at a time of %d", n, allowed))
	}
	if !p.ended.End.IsZero() {
		gap := max(0, x.Start.Sub(p.ended.End))
		if h.host.MinGap < 0 || gap < h.host.MinGap {
			h.host.MinGap = gap
		}
		switch {
		case gap == 0 && len(p.going)+2 <= allowed: // it may as well have come while that answer went on
		case h.examineGap(x, p.ended, owed):
		case h.lost(p.paused, x):
			if !p.spared.Equal(p.paused.End) {
				p.spared = p.paused.End
				h.report.Lost++
			}
		default:
			h.examineGap(x, p.paused, p.pausing)
		}
	}
	p.going = append(p.going, x)
}

// examineGap blames x if it came too soon after the answer before.
func (h *hearing) examineGap(x, before Exchange, owed time.Duration) (blamed bool) {
	gap := x.Start.Sub(before.End)
	if gap >= owed-h.tolerance(before) {
		return false
	}
	h.blame(ShortGap, x, fmt.Sprintf("%s of %s after %s", seconds(gap), seconds(owed), before.URL))
	return true
}

// lost reports whether x came before the end of a pause that the crawler may
// know nothing of, because it was killed just after it was asked to make it.
func (h *hearing) lost(paused, x Exchange) bool {
	if !x.Start.Before(paused.End.Add(h.pace.pausing)) {
		return false
	}
	for _, t := range h.opts.Restarts {
		if t.After(paused.End) && !t.After(x.Start) && t.Sub(paused.End) <= h.opts.Unflushed {
			return true
		}
	}
	return false
}

// declared returns the Delay that the host has asked for, as far as a crawler
// could know it before a request.
func (h *hearing) declared(x Exchange, isRobotsFetch bool) time.Duration {
	var since time.Time
	if isRobotsFetch {
		since = h.restart(x.Start)
	}
	var longest time.Duration
	for origin := range h.origins {
		longest = max(longest, h.archives.law(h.site, origin, x.Start, since).rules.Delay)
	}
	return longest
}

// Tolerances of clocks over sockets.
const (
	wireTolerance = time.Millisecond
	cutTolerance  = 50 * time.Millisecond
)

// tolerance returns what is forgiven of a gap after an answer.
func (h *hearing) tolerance(before Exchange) time.Duration {
	switch {
	case h.opts.Tolerance != 0:
		return max(0, h.opts.Tolerance)
	case before.Wire && before.Broken:
		return cutTolerance
	case before.Wire:
		return wireTolerance
	}
	return 0
}
