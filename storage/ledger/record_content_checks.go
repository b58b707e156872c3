package ledger

import "github.com/decorum-crawler/decorum"

// checkRecord checks the content of a record that is in its place in the chain.
func (v *verifier) checkRecord(r *Record) {
	if first := v.position.Line == 1 && v.previousSegment != nil; first != (r.SegmentStart != nil) {
		v.addFindingf("is not a segment record at the beginning of a file, or is one elsewhere")
	}
	switch {
	case r.RunStart != nil:
		v.checkRunStart(r.RunStart)
	case r.Request != nil:
		v.checkRequest(r)
	case r.Response != nil:
		v.checkResponse(r)
	case r.Refusal != nil:
		v.checkRefusal(r.Refusal)
	case r.Checkpoint != nil:
		v.checkCheckpoint(r)
	case r.SegmentStart != nil:
		v.checkSegmentStart(r.SegmentStart)
	case r.Recovery != nil:
		v.endInterruptedRun()
	case r.RunEnd != nil:
		v.checkRunEnd(r.RunEnd)
	}
}

// checkRunStart checks the start of a run, and makes it the current run.
func (v *verifier) checkRunStart(run *RunStart) {
	v.report.Runs++
	if v.runStart != nil {
		v.addFindingf("begins a run, and the run before has no end")
		v.endInterruptedRun()
	}
	v.runStart, v.runRequestCount, v.lastRunKeyID = run, 0, run.KeyID
	v.delayChecker.runNumber++
	if err := v.verdictChecker.startRun(run); err != nil {
		v.addFindingf("%v", err)
	}
}

// endInterruptedRun ends the current run. If its process was killed, its last requests may have been
// answered until the time of its last record, and these answers are unknown.
func (v *verifier) endInterruptedRun() {
	v.report.UnansweredRequests += v.delayChecker.endInterruptedRun()
	v.robotsRedirects.assumeUnansweredRedirected()
	v.runStart = nil
}

// checkRunEnd checks that each request of the run has a response, and that none is missing.
func (v *verifier) checkRunEnd(end *RunEnd) {
	if n := len(v.delayChecker.unansweredRequests); n > 0 {
		v.addFindingf("ends the run, and %d of its requests have no answer", n)
	}
	if end.Requests != v.runRequestCount {
		v.addFindingf("says that the run made %d requests, and the ledger has %d", end.Requests, v.runRequestCount)
	}
	v.endInterruptedRun()
}

// checkRequest checks the verdict of a request, the redirect that led to it, and its delays.
func (v *verifier) checkRequest(r *Record) {
	v.report.Requests++
	v.runRequestCount++
	q := r.Request
	u, err := decorum.ParseURL(q.URL)
	if err != nil || u.String() != q.URL {
		v.addFindingf("has an invalid URL: %q", q.URL)
		return
	}
	if v.runStart == nil {
		v.addFindingf("is a request outside a run")
		return
	}
	// robots.txt must allow it; a robots.txt needs a redirect if it is not at its origin.
	if reason := v.verdictChecker.checkRequest(u, q); reason != "" {
		v.addFindingf("%s: %s", q.URL, reason)
	} else if q.Kind != KindRobotsTXT {
		v.report.CheckedVerdicts++
	}
	if q.Kind == KindRobotsTXT && !v.robotsRedirects.addAndCheckRequest(r.Number, q) {
		v.reportUnrecordedRedirect(q)
	}
	// The host's delays must be kept.
	delay := v.verdictChecker.robotsDelay(q.RobotsVerdict, r.Time)
	for _, reason := range v.delayChecker.checkRequest(r, u.Origin().Host(), v.runStart, delay) {
		v.addFindingf("%s: %s", q.URL, reason)
	}
	v.report.MeasuredDelays = v.delayChecker.measuredDelayCount
}

// reportUnrecordedRedirect reports a request for a robots.txt to which no recorded redirect leads: a
// finding, or a warning if several processes crawl together, because the ledger of another may have the
// redirect.
func (v *verifier) reportUnrecordedRedirect(q *Request) {
	const what = "%s: it was requested as the robots.txt of %s, and no redirect from there is recorded"
	if v.runStart.SharedCrawl {
		v.addWarningf(what+" here: the ledger of another process may have it", q.URL, q.Origin)
		return
	}
	v.addFindingf(what, q.URL, q.Origin)
}

// checkRefusal checks that the verdict of a refusal disallows its URL.
func (v *verifier) checkRefusal(q *Refusal) {
	v.report.Refusals++
	u, err := decorum.ParseURL(q.URL)
	switch {
	case err != nil || u.String() != q.URL:
		v.addFindingf("has an invalid URL: %q", q.URL)
	case v.runStart == nil:
		v.addFindingf("is a refusal outside a run")
	case q.RobotsVerdict == nil:
	case q.RobotsVerdict.Allowed:
		v.addFindingf("%s: it was refused although the verdict allows it", q.URL)
	default:
		if reason := v.verdictChecker.checkVerdict(u, q.RobotsVerdict); reason != "" {
			v.addFindingf("%s: %s", q.URL, reason)
			return
		}
		v.report.CheckedVerdicts++
	}
}

// checkResponse checks that a response belongs to a request, and its times.
func (v *verifier) checkResponse(r *Record) {
	v.report.Responses++
	v.robotsRedirects.addResponse(r.Response)
	if reason := v.delayChecker.matchResponseToRequest(r); reason != "" {
		v.addFindingf("%s", reason)
	}
}
