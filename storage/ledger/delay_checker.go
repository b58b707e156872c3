package ledger

import (
	"fmt"
	"time"
)

// A delayChecker checks the rests of hosts by the times of records, as they would be
// had nobody set the clock.
type delayChecker struct {
	clockShift          time.Duration // by how much it was, so far
	hosts               map[string]*hostVisitState
	unansweredRequests  map[int64]pendingRequest // requests without an answer, by number
	lastVisitRecordTime time.Time                // of the last record that had to do with it
	runNumber           int                      // which one it is
	measuredDelayCount  int64                    // rests
}

// A pendingRequest waits for its answer.
type pendingRequest struct {
	host   string
	sentAt time.Time
}

// A hostVisitState is what is known of a host.
type hostVisitState struct {
	lastEnd      time.Time // of the last visit; zero: none has ended
	lastRun      int       // that made it
	activeVisits int       // visits that go on
}

// unshiftedTime returns the time of a record, or in one, had nobody set the clock.
func (p *delayChecker) unshiftedTime(t time.Time) time.Time { return t.Add(-p.clockShift) }

// delayTolerance is by how much times may differ that were measured by a clock which is
// being corrected: 1 ms, or a thousandth of a longer rest.
func delayTolerance(delay time.Duration) time.Duration { return max(time.Millisecond, delay/1000) }

// checkRequest enters a request, and says what is wrong with its pace. pause is what
// its robots.txt asks for.
func (p *delayChecker) checkRequest(r *Record, host string, run *RunStart, robotsDelay time.Duration) (problems []string) {
	q, now := r.Request, p.unshiftedTime(r.Time)
	required, observed := time.Duration(q.RequiredDelayMS)*time.Millisecond, time.Duration(q.ObservedDelayMS)*time.Millisecond
	h := p.hosts[host]
	if h == nil {
		h = &hostVisitState{}
		p.hosts[host] = h
	}
	addProblem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if observed < required {
		addProblem("the host was owed %v and had %v", required, observed)
	}
	if required < robotsDelay.Truncate(time.Millisecond) {
		addProblem("robots.txt asks for a rest of %v, and the host was owed %v", robotsDelay, required)
	}
	if h.activeVisits >= max(q.Slots, 1) {
		addProblem("it is visit %d to the host at a time, and %d may go on", h.activeVisits+1, max(q.Slots, 1))
	}
	if !h.lastEnd.IsZero() && q.Slots <= 1 {
		p.measuredDelayCount++
		if measured := now.Sub(h.lastEnd); measured < required-delayTolerance(required) {
			addProblem("the host was owed %v, and had %v by the times of the records", required, measured)
		}
		if runDelay := run.hostDelayAt(host, h.lastEnd.Add(p.clockShift)); h.lastRun == p.runNumber && required < runDelay {
			addProblem("the run rests for %v, and the host was owed %v", runDelay, required)
		}
	}
	h.activeVisits++
	p.unansweredRequests[r.Number] = pendingRequest{host, now}
	p.lastVisitRecordTime = now
	return problems
}

// hostDelayAt returns the rest that a run gives to a host after a visit that ended then.
func (r *RunStart) hostDelayAt(host string, end time.Time) time.Duration {
	ms := r.DelayMS
	if o, ok := r.HostOverrides[host]; ok && o.DelayMS != nil && (o.ExpiresAt.IsZero() || end.Before(o.ExpiresAt)) {
		ms = *o.DelayMS
	}
	return time.Duration(ms) * time.Millisecond
}

// matchResponseToRequest ends a request, and says what is wrong with that.
func (p *delayChecker) matchResponseToRequest(r *Record) string {
	a, now, end := r.Response, p.unshiftedTime(r.Time), p.unshiftedTime(r.Response.EndedAt)
	request, ok := p.unansweredRequests[a.RequestNumber]
	if !ok {
		return fmt.Sprintf("is the answer to request %d, which is not there or has one", a.RequestNumber)
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

// endInterruptedRun ends all requests, at the time of the last record, and returns how
// many there were.
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
