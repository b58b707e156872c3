package robots

import (
	"slices"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// Request-rate and Visit-time come from "An Extended Standard for Robot Exclusion" (S. Conner, 1996).
// Neither Google nor Yandex knows them. Every dialect reads them as extensions, and they do not shape
// groups (GRP-08).

// A rateAndVisitTimes contains the Request-rate and Visit-time lines that bind an agent, without
// repetitions. visitTimes has at most maxTimeRanges elements, rates one more: for the whole day.
type rateAndVisitTimes struct {
	rates      []syntax.TimedDelay     // at most one per time of day
	visitTimes []syntax.TimeOfDayRange // empty: visits are allowed at any time
}

// DelayAt returns the delay between two requests that the file demands of the agent at time t: the
// longest of Crawl-delay and the Request-rate lines in force at that time. It is never negative and
// at most a year.
func (r *Rules) DelayAt(t time.Time) time.Duration {
	delay := r.delay
	for _, rate := range r.rateAndVisitTimes.rates {
		if rate.During.Contains(t) {
			delay = max(delay, rate.Delay)
		}
	}
	return delay
}

// NextAllowedTime returns the first time, not before t, at which Visit-time permits a visit. It
// returns t if visits are permitted then, or if no Visit-time line binds the agent. Each of several
// lines permits additional hours.
func (r *Rules) NextAllowedTime(t time.Time) time.Time {
	var earliest time.Time
	for _, d := range r.rateAndVisitTimes.visitTimes {
		if next := d.Next(t); earliest.IsZero() || next.Before(earliest) {
			earliest = next
		}
	}
	if earliest.IsZero() {
		return t
	}
	return earliest
}

// RateAndVisitTimeLines returns the Request-rate and Visit-time lines that bind the agent, in the
// form in which DelayAt and NextAllowedTime apply them: "request-rate: 1/300s 0800-1300",
// "visit-time: 0600-0845". Repeated lines appear once.
func (r *Rules) RateAndVisitTimeLines() []string {
	var lines []string
	for _, rate := range r.rateAndVisitTimes.rates {
		s := syntax.RequestRate.String() + ": 1/" + strconv.FormatFloat(rate.Delay.Seconds(), 'f', -1, 64) + "s"
		if rate.During != (syntax.TimeOfDayRange{}) {
			s += " " + rate.During.String()
		}
		lines = append(lines, s)
	}
	for _, d := range r.rateAndVisitTimes.visitTimes {
		lines = append(lines, syntax.VisitTime.String()+": "+d.String())
	}
	return lines
}

// newRateAndVisitTimes parses Request-rate and Visit-time lines. It keeps one of several equal lines
// and limits each kind by maxTimeRanges, so that a file cannot make DelayAt and NextAllowedTime slow.
func newRateAndVisitTimes(lines []syntax.Line) rateAndVisitTimes {
	var p rateAndVisitTimes
	for _, l := range lines {
		if l.Field == syntax.RequestRate {
			if r, ok := syntax.ParseRequestRate(l.Value); ok {
				p.addRate(r)
			}
			continue
		}
		d, ok := syntax.ParseTimeOfDayRange(l.Value)
		if ok && len(p.visitTimes) < maxTimeRanges && !slices.Contains(p.visitTimes, d) {
			p.visitTimes = append(p.visitTimes, d)
		}
	}
	return p
}

// maxTimeRanges is how many different times of day are kept for each of the two fields. Further
// Request-rate lines apply to the whole day; further Visit-time lines are ignored.
const maxTimeRanges = 32

// addRate adds a rate. Of two rates for the same time of day it keeps the longer delay.
func (p *rateAndVisitTimes) addRate(r syntax.TimedDelay) {
	if len(p.rates) >= maxTimeRanges {
		r.During = syntax.TimeOfDayRange{}
	}
	for i := range p.rates {
		if p.rates[i].During == r.During {
			p.rates[i].Delay = max(p.rates[i].Delay, r.Delay)
			return
		}
	}
	p.rates = append(p.rates, r)
}
