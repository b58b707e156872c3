package crawltest

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// A hostDelayState is what the judge remembers of a host from request to request.
type hostDelayState struct {
	inFlight                 []Exchange    // not ended when the last request came
	lastEndedExchange        Exchange      // whose answer ended last
	longestRequestedPause    time.Duration // the Retry-After of the answer that asks to wait longest,
	exchangeWithLongestPause Exchange      // and that answer
	lastLostPauseExchangeEnd time.Time     // when the last such answer came that died with the crawler
}

// retireEndedExchanges lets the answers end that had done so when a request came.
func (p *hostDelayState) retireEndedExchanges(at time.Time, tolerance func(Exchange) time.Duration) {
	p.inFlight = slices.DeleteFunc(p.inFlight, func(x Exchange) bool {
		if x.End.IsZero() || x.End.After(at.Add(tolerance(x))) {
			return false
		}
		if x.End.After(p.lastEndedExchange.End) {
			p.lastEndedExchange = x
		}
		if pause := requestedPause(x); x.End.Add(pause).After(p.exchangeWithLongestPause.End.Add(p.longestRequestedPause)) {
			p.exchangeWithLongestPause, p.longestRequestedPause = x, pause
		}
		return true
	})
}

// requestedPause returns how long an answer asks everybody to stay away.
func requestedPause(x Exchange) time.Duration {
	if x.Status == http.StatusTooManyRequests || x.Status == http.StatusServiceUnavailable {
		return x.RetryAfter
	}
	return 0
}

// checkDelayAndOverlap asks whether the host was owed a rest, and how many requests it
// had at a time.
func (h *hostJudge) checkDelayAndOverlap(x Exchange, isRobotsFetch bool) {
	p := &h.delayState
	p.retireEndedExchanges(x.Start, h.gapTolerance)
	declared := h.declaredDelay(x, isRobotsFetch)
	required := max(h.opts.MinDelay, declared)
	h.hostReport.MaxRequiredDelay = max(h.hostReport.MaxRequiredDelay, required)
	allowed := 1
	if h.site != nil && declared == 0 {
		allowed = max(1, h.site.MaxConcurrency)
	}
	if n := len(p.inFlight) + 1; n > allowed {
		h.addViolation(Overlap, x, fmt.Sprintf("%d at a time of %d", n, allowed))
	}
	if !p.lastEndedExchange.End.IsZero() {
		gap := max(0, x.Start.Sub(p.lastEndedExchange.End))
		if h.hostReport.MinGap < 0 || gap < h.hostReport.MinGap {
			h.hostReport.MinGap = gap
		}
		switch {
		case gap == 0 && len(p.inFlight)+2 <= allowed: // it may as well have come while that answer went on
		case h.checkGap(x, p.lastEndedExchange, required):
		case h.isPauseLostInCrash(p.exchangeWithLongestPause, x):
			if !p.lastLostPauseExchangeEnd.Equal(p.exchangeWithLongestPause.End) {
				p.lastLostPauseExchangeEnd = p.exchangeWithLongestPause.End
				h.report.LostPauses++
			}
		default:
			h.checkGap(x, p.exchangeWithLongestPause, p.longestRequestedPause)
		}
	}
	p.inFlight = append(p.inFlight, x)
}

// checkGap blames x if it came too soon after the answer before.
func (h *hostJudge) checkGap(x, before Exchange, required time.Duration) (isShort bool) {
	gap := x.Start.Sub(before.End)
	if gap >= required-h.gapTolerance(before) {
		return false
	}
	h.addViolation(ShortGap, x, fmt.Sprintf("%s of %s after %s", formatSeconds(gap), formatSeconds(required), before.URL))
	return true
}

// isPauseLostInCrash reports whether x came before the end of a pause that the crawler may
// know nothing of, because it was killed just after it was asked to make it.
func (h *hostJudge) isPauseLostInCrash(paused, x Exchange) bool {
	if !x.Start.Before(paused.End.Add(h.delayState.longestRequestedPause)) {
		return false
	}
	for _, t := range h.opts.RestartTimes {
		if t.After(paused.End) && !t.After(x.Start) && t.Sub(paused.End) <= h.opts.CrashLossWindow {
			return true
		}
	}
	return false
}

// declaredDelay returns the Delay that the host has asked for, as far as a crawler
// could know it before a request.
func (h *hostJudge) declaredDelay(x Exchange, isRobotsFetch bool) time.Duration {
	var since time.Time
	if isRobotsFetch {
		since = h.lastRestartBefore(x.Start)
	}
	var longest time.Duration
	for origin := range h.seenOrigins {
		longest = max(longest, h.exchanges.rulesAt(h.site, origin, x.Start, since).rules.CrawlDelay)
	}
	return longest
}

// Tolerances of clocks over sockets.
const (
	socketTolerance     = time.Millisecond
	incompleteTolerance = 50 * time.Millisecond
)

// gapTolerance returns what is forgiven of a gap after an answer.
func (h *hostJudge) gapTolerance(before Exchange) time.Duration {
	switch {
	case h.opts.GapTolerance != 0:
		return max(0, h.opts.GapTolerance)
	case before.OverSocket && before.Incomplete:
		return incompleteTolerance
	case before.OverSocket:
		return socketTolerance
	}
	return 0
}
