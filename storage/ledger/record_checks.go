package ledger

import (
	"github.com/decorum-crawler/decorum"
)

// meaning checks what a record says, beyond that it is there.
func (v *verifier) meaning(r *Record) {
	if first := v.at.Line == 1 && v.before != nil; first != (r.Segment != nil) {
		v.find("is not what begins a file, and only that")
	}
	switch {
	case r.Run != nil:
		v.begin(r.Run)
	case r.Request != nil:
		v.request(r)
	case r.Answer != nil:
		v.answer(r)
	case r.Refusal != nil:
		v.refusal(r.Refusal)
	case r.Checkpoint != nil:
		v.checkpoint(r)
	case r.Segment != nil:
		v.follows(r.Segment)
	case r.Recovery != nil:
		v.interrupt()
	case r.End != nil:
		v.finish(r.End)
	}
}

// begin checks the start of a run.
func (v *verifier) begin(run *Run) {
	v.report.Runs++
	if v.run != nil {
		v.find("begins a run, and the one before has no end")
		v.interrupt()
	}
	v.run, v.sent, v.key = run, 0, run.Key
	v.pace.begin()
	if err := v.verdictChecker.begin(run); err != nil {
		v.find("%v", err)
	}
}

// interrupt ends a run whose process was killed: what it had asked for last may
// have been answered until the moment of its last record, as far as is known.
func (v *verifier) interrupt() {
	v.report.Interrupted += v.pace.interrupt()
	v.led.interrupt()
	v.run = nil
}

// finish checks the end of a run.
func (v *verifier) finish(end *End) {
	if n := len(v.pace.open); n > 0 {
		v.find("ends the run, and %d of its requests have no answer", n)
	}
	if end.Requests != v.sent {
		v.find("says that the run made %d requests, and %d are here", end.Requests, v.sent)
	}
	v.interrupt()
}

// request checks a request: its verdict, and its pace.
func (v *verifier) request(r *Record) {
	v.report.Requests++
	v.sent++
	q := r.Request
	u, err := decorum.ParseURL(q.URL)
	if err != nil || u.String() != q.URL {
		v.find("is of %q, which is no URL", q.URL)
		return
	}
	if v.run == nil {
		v.find("is a request of no run")
		return
	}
	if why := v.verdictChecker.request(u, q); why != "" {
		v.find("%s: %s", q.URL, why)
	} else if q.Kind != RobotsTXT {
		v.report.Verdicts++
	}
	if q.Kind == RobotsTXT && !v.led.request(r.N, q) {
		v.unfollowed(q)
	}
	pause := v.verdictChecker.pause(q.Robots, r.Time)
	for _, why := range v.pace.request(r, u.Origin().Host(), v.run, pause) {
		v.find("%s: %s", q.URL, why)
	}
	v.report.Rests = v.pace.measured
}

// unfollowed reports a request for a robots.txt to which no recorded redirect leads. If
// several processes crawl together, the redirect may be in the ledger of another.
func (v *verifier) unfollowed(q *Request) {
	const what = "%s: it is asked for as the robots.txt of %s, and no redirect from there is recorded"
	if v.run.Shared {
		v.warn(what+" here: the ledger of another process may have it", q.URL, q.Origin)
		return
	}
	v.find(what, q.URL, q.Origin)
}

// refusal checks a URL that was not asked for.
func (v *verifier) refusal(q *Refusal) {
	v.report.Refusals++
	u, err := decorum.ParseURL(q.URL)
	switch {
	case err != nil || u.String() != q.URL:
		v.find("is of %q, which is no URL", q.URL)
	case v.run == nil:
		v.find("is a refusal of no run")
	case q.Robots == nil:
	case q.Robots.Allowed:
		v.find("%s: it is refused, and the verdict allows it", q.URL)
	default:
		if why := v.verdictChecker.verdict(u, q.Robots); why != "" {
			v.find("%s: %s", q.URL, why)
			return
		}
		v.report.Verdicts++
	}
}

// answer checks what came of a request.
func (v *verifier) answer(r *Record) {
	v.report.Answers++
	v.led.answer(r.Answer)
	if why := v.pace.answer(r); why != "" {
		v.find("%s", why)
	}
}
