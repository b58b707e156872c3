package ledger

import (
	"fmt"
	"time"
)

// A paceKeeper checks the rests of hosts by the times of records, as they would be
// had nobody set the clock.
type paceKeeper struct {
	set      time.Duration // by how much it was, so far
	hosts    map[string]*hostPace
	open     map[int64]asked // requests without an answer, by number
	time     time.Time       // of the last record that had to do with it
	run      int             // which one it is
	measured int64           // rests
}

// An asked request waits for its answer.
type asked struct {
	host string
	at   time.Time
}

// A hostPace is what is known of a host.
type hostPace struct {
	end  time.Time // of the last visit; zero: none has ended
	run  int       // that made it
	open int       // visits that go on
}

func newPaceKeeper() paceKeeper {
	return paceKeeper{hosts: map[string]*hostPace{}, open: map[int64]asked{}}
}

// begin begins a run.
func (p *paceKeeper) begin() { p.run++ }

// real returns the time of a record, or in one, had nobody set the clock.
func (p *paceKeeper) real(t time.Time) time.Time { return t.Add(-p.set) }

// slack is by how much times may differ that were measured by a clock which is
// being corrected: 1 ms, or a thousandth of a longer rest.
func slack(rest time.Duration) time.Duration { return max(time.Millisecond, rest/1000) }

// request enters a request, and says what is wrong with its pace. pause is what
// its robots.txt asks for.
func (p *paceKeeper) request(r *Record, host string, run *Run, pause time.Duration) (wrong []string) {
	q, now := r.Request, p.real(r.Time)
	required, observed := time.Duration(q.RequiredMS)*time.Millisecond, time.Duration(q.ObservedMS)*time.Millisecond
	h := p.hosts[host]
	if h == nil {
		h = &hostPace{}
		p.hosts[host] = h
	}
	find := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if observed < required {
		find("the host was owed %v and had %v", required, observed)
	}
	if required < pause.Truncate(time.Millisecond) {
		find("robots.txt asks for a rest of %v, and the host was owed %v", pause, required)
	}
	if h.open >= max(q.Slots, 1) {
		find("it is visit %d to the host at a time, and %d may go on", h.open+1, max(q.Slots, 1))
	}
	if !h.end.IsZero() && q.Slots <= 1 {
		p.measured++
		if rest := now.Sub(h.end); rest < required-slack(required) {
			find("the host was owed %v, and had %v by the times of the records", required, rest)
		}
		if own := run.delay(host, h.end.Add(p.set)); h.run == p.run && required < own {
			find("the run rests for %v, and the host was owed %v", own, required)
		}
	}
	h.open++
	p.open[r.N] = asked{host, now}
	p.time = now
	return wrong
}

// delay returns the rest that a run gives to a host after a visit that ended then.
func (r *Run) delay(host string, end time.Time) time.Duration {
	ms := r.DelayMS
	if o, ok := r.Hosts[host]; ok && o.DelayMS != nil && (o.Expires.IsZero() || end.Before(o.Expires)) {
		ms = *o.DelayMS
	}
	return time.Duration(ms) * time.Millisecond
}

// answer ends a request, and says what is wrong with that.
func (p *paceKeeper) answer(r *Record) string {
	a, now, end := r.Answer, p.real(r.Time), p.real(r.Answer.End)
	from, ok := p.open[a.Request]
	if !ok {
		return fmt.Sprintf("is the answer to request %d, which is not there or has one", a.Request)
	}
	delete(p.open, a.Request)
	h := p.hosts[from.host]
	h.open--
	h.run = p.run
	p.time = now
	if end.After(h.end) {
		h.end = end
	}
	if end.Before(from.at.Add(-slack(0))) || end.After(now.Add(slack(0))) {
		return "is an answer that ended before its request, or after its record"
	}
	return ""
}

// interrupt ends all requests, at the time of the last record, and returns how
// many there were.
func (p *paceKeeper) interrupt() int64 {
	n := len(p.open)
	for _, from := range p.open {
		h := p.hosts[from.host]
		h.open, h.run = 0, p.run
		if p.time.After(h.end) {
			h.end = p.time
		}
	}
	clear(p.open)
	return int64(n)
}
