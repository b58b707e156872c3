package politeness

import (
	"net/http"
	"time"
)

// A LearnedPace is the pace that a host has turned out to accept. It becomes slower after 429 and
// 503, and slowly faster while other answers come. The zero value has learned nothing.
type LearnedPace struct {
	Delay time.Duration // shortest rest after a visit; 0: nothing learned
	// AnswersAtDelay counts the accepted requests since Delay last changed.
	AnswersAtDelay int
	// WindowStart and WindowAnswers describe the accepted requests since the host last became
	// willing to answer: the start of the first, and how many there were. So many requests, over
	// the time from WindowStart to the end of the refusals that follow, are known to be too many.
	WindowStart   time.Time
	WindowAnswers int
	LastAnswer    time.Time // end of the last answer
	Throttled     bool      // the last answer was 429 or 503
}

const (
	// minLearnedDelay is the least rest that the first refusal is multiplied with, for hosts that are
	// visited without a delay.
	minLearnedDelay = 100 * time.Millisecond
	// answersUntilFaster accepted requests in a row make the learned delay shorter by a part of
	// fasterPart.
	answersUntilFaster = 10
	fasterPart         = 32
	// A window of fewer accepted requests than minWindowAnswers may only be what an earlier one left:
	// it at most doubles the delay.
	minWindowAnswers = 3
	// maxWindowPause is the longest pause between two requests of one window. Within longer pauses
	// the host may have forgotten the requests.
	maxWindowPause = time.Minute
)

// afterVisit returns the learned pace after v. delay is the rest that the policy and robots.txt
// require of the host, limit the longest that the pace may learn.
func (l LearnedPace) afterVisit(v FinishedVisit, delay, limit time.Duration) LearnedPace {
	switch {
	case limit <= 0, v.Status == 0: // without an answer, the host may not have seen the request
		return l
	case v.Status == http.StatusTooManyRequests, v.Status == http.StatusServiceUnavailable:
		return l.afterRefusal(v, delay, limit)
	}
	return l.afterAnswer(v, delay)
}

// afterRefusal makes the pace slower. The first of consecutive refusals makes the required delay
// half as long again, or a learned delay a quarter longer: the further refusals only show that the
// host has not recovered. Each 429 makes the delay so long that the accepted requests fit into the
// time until the host may accept another. A 503 has no such window: its Retry-After is often the
// end of a maintenance.
func (l LearnedPace) afterRefusal(v FinishedVisit, delay, limit time.Duration) LearnedPace {
	before, base := l.Delay, max(delay, minLearnedDelay)
	if !l.Throttled && v.Start.Sub(l.LastAnswer) > maxWindowPause {
		l.WindowAnswers = 0 // the time of the pause is not one that the host needs for the requests
	}
	if !l.Throttled {
		l.Delay = max(before/4*5, base/2*3) // divided first: without overflow
	}
	if v.Status == http.StatusTooManyRequests && l.WindowAnswers > 0 {
		fitting := v.End.Add(min(v.RetryAfter, maxDelay)).Sub(l.WindowStart) / time.Duration(l.WindowAnswers)
		switch {
		case l.WindowAnswers >= minWindowAnswers:
			l.Delay = max(l.Delay, fitting)
		case !l.Throttled:
			l.Delay = max(l.Delay, min(fitting, 2*max(before, base)))
		}
	}
	l.Delay = max(before, min(l.Delay, limit))
	l.Throttled, l.AnswersAtDelay, l.LastAnswer = true, 0, v.End
	return l
}

// afterAnswer counts an accepted request, and makes the pace faster after answersUntilFaster of
// them. A learned delay that is no longer than the required one is forgotten. One above the crawl's
// maximum stays: another crawl of the host may obey it.
func (l LearnedPace) afterAnswer(v FinishedVisit, delay time.Duration) LearnedPace {
	// A request after a back-off, or after a longer pause, begins a new window.
	if l.Throttled || l.WindowAnswers == 0 || v.Health.ConsecutiveFailures > 0 ||
		v.Start.Sub(l.LastAnswer) > maxWindowPause {
		l.WindowStart, l.WindowAnswers, l.Throttled = v.Start, 0, false
	}
	l.LastAnswer = v.End
	l.WindowAnswers++
	if l.Delay == 0 {
		return l
	}
	if l.AnswersAtDelay++; l.AnswersAtDelay >= answersUntilFaster {
		l.Delay, l.AnswersAtDelay = l.Delay-l.Delay/fasterPart, 0
	}
	if l.Delay <= max(delay, minLearnedDelay) {
		l.Delay, l.AnswersAtDelay = 0, 0
	}
	return l
}

// AtMost returns l with a delay of at most limit; a negative limit is 0.
func (l LearnedPace) AtMost(limit time.Duration) LearnedPace {
	l.Delay = min(l.Delay, max(limit, 0))
	return l
}

// newerOf returns the newer of two paces of a host, which different crawls or processes have
// learned. If the age of one is unknown, the slower one counts.
func newerOf(a, b LearnedPace) LearnedPace {
	switch {
	case a.LastAnswer.IsZero() || b.LastAnswer.IsZero():
		if b.Delay > a.Delay || b.Delay == a.Delay && a.LastAnswer.IsZero() {
			return b
		}
	case b.LastAnswer.After(a.LastAnswer):
		return b
	}
	return a
}
