package crawltest

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// A hostDelayState is what the judge keeps of a host between requests.
type hostDelayState struct {
	inFlight                 []Exchange    // exchanges that had not ended when the last request came
	lastEndedExchange        Exchange      // the exchange that ended last
	longestRequestedPause    time.Duration // the Retry-After of exchangeWithLongestPause
	exchangeWithLongestPause Exchange      // the exchange whose Retry-After ends last
	lastLostPauseExchangeEnd time.Time     // the End of the last exchange whose pause a crash lost
}

// retireEndedExchanges removes from p.inFlight the exchanges that ended by at, plus tolerance. It
// updates the last ended exchange and the longest pause.
func (p *hostDelayState) retireEndedExchanges(at time.Time, tolerance func(Exchange) time.Duration) {
	p.inFlight = slices.DeleteFunc(p.inFlight, func(x Exchange) bool {
		if x.End.IsZero() || x.End.After(at.Add(tolerance(x))) {
			return false
		}
		if x.End.After(p.lastEndedExchange.End) {
			p.lastEndedExchange = x
		}
		if pause := requestedPause(x); x.End.Add(pause).After(
			p.exchangeWithLongestPause.End.Add(p.longestRequestedPause)) {
			p.exchangeWithLongestPause, p.longestRequestedPause = x, pause
		}
		return true
	})
}

// requestedPause returns the Retry-After of an answer of 429 or 503, and 0 for other answers.
func requestedPause(x Exchange) time.Duration {
	if x.Status == http.StatusTooManyRequests || x.Status == http.StatusServiceUnavailable {
		return x.RetryAfter
	}
	return 0
}

// checkDelayAndOverlap checks the gap before a request, and how many requests are in flight with it.
func (h *hostJudge) checkDelayAndOverlap(x Exchange, isRobotsFetch bool) {
	p := &h.delayState
	p.retireEndedExchanges(x.Start, h.gapTolerance)
	// What the host requires of this request.
	declared := h.declaredDelay(x, isRobotsFetch)
	required := max(h.opts.MinDelay, declared)
	h.hostReport.MaxRequiredDelay = max(h.hostReport.MaxRequiredDelay, required)
	allowed := 1
	if h.site != nil && declared == 0 {
		allowed = max(1, h.site.MaxConcurrency)
	}
	// How many requests it has at a time.
	if n := len(p.inFlight) + 1; n > allowed {
		h.addViolation(Overlap, x, fmt.Sprintf("%d at a time of %d", n, allowed))
	}
	// The gap since the last answer, and since the answer with the longest pause.
	if !p.lastEndedExchange.End.IsZero() {
		gap := max(0, x.Start.Sub(p.lastEndedExchange.End))
		if h.hostReport.MinGap < 0 || gap < h.hostReport.MinGap {
			h.hostReport.MinGap = gap
		}
		switch {
		case gap == 0 && len(p.inFlight)+2 <= allowed: // treated as concurrent with that answer
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

// checkGap records a ShortGap if x came earlier than required after the answer before, and reports
// whether it did.
func (h *hostJudge) checkGap(x, before Exchange, required time.Duration) (isShort bool) {
	gap := x.Start.Sub(before.End)
	if gap >= required-h.gapTolerance(before) {
		return false
	}
	h.addViolation(ShortGap, x, fmt.Sprintf("%s of %s after %s", formatSeconds(gap),
		formatSeconds(required), before.URL))
	return true
}

// isPauseLostInCrash reports whether x came before the end of a pause that the crawler may have lost,
// because it was killed within CrashLossWindow after the answer paused.
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

// declaredDelay returns the longest CrawlDelay of the host's origins that the crawler could know
// when it sent x. For a fetch of robots.txt it ignores what was read before the last restart.
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

// The default tolerances over sockets.
const (
	socketTolerance     = time.Millisecond
	incompleteTolerance = 50 * time.Millisecond // after an incomplete answer
)

// gapTolerance returns how much shorter than required the gap after an answer may be.
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
