package ledger

import (
	"fmt"
	"time"
)

// A delayChecker checks the delays between visits to each host by the times of records, less the
// recorded changes of the clock.
type delayChecker struct {
	clockShift          time.Duration              // sum of the changes of the clock so far
	hosts               map[string]*hostVisitState // by name
	unansweredRequests  map[int64]pendingRequest   // requests without a response, by number
	lastVisitRecordTime time.Time                  // time of the last request or response, less clockShift
	runNumber           int                        // number of the current run
	measuredDelayCount  int64                      // delays that were measured
}

// A pendingRequest is a request without a response.
type pendingRequest struct {
	host   string
	sentAt time.Time // time of its record, less clockShift
}

// A hostVisitState is the state of a host after the records so far.
type hostVisitState struct {
	lastEnd      time.Time // latest end of a visit, less clockShift; zero if none has ended
	lastRun      int       // number of the run that made that visit
	activeVisits int       // visits without a response
}

// unshiftedTime returns a time from a record, less the changes of the clock so far.
func (p *delayChecker) unshiftedTime(t time.Time) time.Time { return t.Add(-p.clockShift) }

// delayTolerance returns by how much a delay may be too short, because the clock may be corrected
// slowly meanwhile: 1 ms, or a thousandth of a longer delay.
func delayTolerance(delay time.Duration) time.Duration { return max(time.Millisecond, delay/1000) }

// checkRequest records a request to a host, and returns its faults: delays that are too short, and too
// many visits at a time. robotsDelay is the delay that its robots.txt demands.
func (p *delayChecker) checkRequest(r *Record, host string, run *RunStart,
	robotsDelay time.Duration) (problems []string) {
	q, now := r.Request, p.unshiftedTime(r.Time)
	required, observed := time.Duration(q.RequiredDelayMS)*time.Millisecond,
		time.Duration(q.ObservedDelayMS)*time.Millisecond
	h := p.hosts[host]
	if h == nil {
		h = &hostVisitState{}
		p.hosts[host] = h
	}
	addProblem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if observed < required {
		addProblem("the required delay is %v, the observed delay %v", required, observed)
	}
	if required < robotsDelay.Truncate(time.Millisecond) {
		addProblem("robots.txt demands a delay of %v, the required delay is %v", robotsDelay, required)
	}
	if h.activeVisits >= max(q.Slots, 1) {
		addProblem("the host has %d visits at a time, and may have %d", h.activeVisits+1, max(q.Slots, 1))
	}
	// With several slots visits overlap, and the times of records say nothing about delays.
	if !h.lastEnd.IsZero() && q.Slots <= 1 {
		p.measuredDelayCount++
		if measured := now.Sub(h.lastEnd); measured < required-delayTolerance(required) {
			addProblem("the required delay is %v, and by the times of the records the delay was %v", required, measured)
		}
		if runDelay := run.hostDelayAt(host, h.lastEnd.Add(p.clockShift)); h.lastRun == p.runNumber &&
			required < runDelay {
			addProblem("the delay of the run is %v, the required delay %v", runDelay, required)
		}
	}
	h.activeVisits++
	p.unansweredRequests[r.Number] = pendingRequest{host, now}
	p.lastVisitRecordTime = now
	return problems
}

// hostDelayAt returns the delay of a run for a host after a visit that ended at end.
func (r *RunStart) hostDelayAt(host string, end time.Time) time.Duration {
	ms := r.DelayMS
	if o, ok := r.HostOverrides[host]; ok && o.DelayMS != nil && (o.ExpiresAt.IsZero() || end.Before(o.ExpiresAt)) {
		ms = *o.DelayMS
	}
	return time.Duration(ms) * time.Millisecond
}

// matchResponseToRequest ends the visit of a response, and returns the fault of the response, or an
// empty string.
func (p *delayChecker) matchResponseToRequest(r *Record) string {
	a, now, end := r.Response, p.unshiftedTime(r.Time), p.unshiftedTime(r.Response.EndedAt)
	request, ok := p.unansweredRequests[a.RequestNumber]
	if !ok {
		return fmt.Sprintf("is the answer to request %d, which is missing or has an answer already", a.RequestNumber)
	}
	delete(p.unansweredRequests, a.RequestNumber)
	h := p.hosts[request.host]
	h.activeVisits--
	h.lastRun = p.runNumber
	p.lastVisitRecordTime = now
	if end.After(h.lastEnd) {
		h.lastEnd = end
	}
	if end.Before(request.sentAt.Add(-delayTolerance(0))) || end.After(now.Add(delayTolerance(0))) {
		return "is an answer that ended before its request, or after its record"
	}
	return ""
}

// endInterruptedRun ends all visits without a response at the time of the last record about a visit:
// they ended no earlier, as far as the records show. It returns how many there were.
func (p *delayChecker) endInterruptedRun() int64 {
	n := len(p.unansweredRequests)
	for _, request := range p.unansweredRequests {
		h := p.hosts[request.host]
		h.activeVisits, h.lastRun = 0, p.runNumber
		if p.lastVisitRecordTime.After(h.lastEnd) {
			h.lastEnd = p.lastVisitRecordTime
		}
	}
	clear(p.unansweredRequests)
	return int64(n)
}
