package robots

import (
	"slices"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// Request-rate and Visit-time come from "An Extended Standard for Robot
// Exclusion" (S. Conner, 1996). Neither Google nor Yandex knows them; they are
// read as extensions, in every dialect, and shape no groups (GRP-08).

// A rateAndVisitTimes is what the Request-rate and Visit-time lines of a record ask for.
type rateAndVisitTimes struct {
	rates      []syntax.TimedDelay
	visitTimes []syntax.TimeOfDayRange
}

// DelayAt returns how long the agent is asked to pause between two requests at
// the moment t: the longest of Crawl-delay and of the Request-rate lines that
// are in force then. It is never negative and at most a year.
func (r *Rules) DelayAt(t time.Time) time.Duration {
	delay := r.delay
	for _, rate := range r.rateAndVisitTimes.rates {
		if rate.During.Contains(t) {
			delay = max(delay, rate.Delay)
		}
	}
	return delay
}

// NextAllowedTime returns the first moment from t on at which Visit-time lets the agent
// come: t itself if it does, or if the file says nothing of it. Of several
// lines each names hours in which it may come.
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

// RateAndVisitTimeLines returns the Request-rate and Visit-time lines that bind the agent,
// as DelayAt and NextAllowedTime read them: "request-rate: 1/300s 0800-1300", "visit-time:
// 0600-0845". What is said twice is there once.
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

// newRateAndVisitTimes returns what Request-rate and Visit-time lines ask for. Of what is
// said twice one is kept, so that a file cannot make a question of the rules long.
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

// maxTimeRanges is how many different hours of one kind are kept. Of further rates
// the pause is kept for the whole day; of further visits nothing is.
const maxTimeRanges = 32

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
