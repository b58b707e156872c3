package politeness

import (
	"cmp"
	"slices"
	"time"
)

// patience is how long a slot is kept free for who was called, and for how long
// a crawl that could come again, and does not, still has a say.
const patience = 10 * time.Second

// maxWaitEstimate bounds for how long who waits is told to stay away, in case
// nobody calls: a crash could leave it waiting.
const maxWaitEstimate = 10 * time.Minute

// A pool is what several visitors share, the crawls of a host or the hosts of an
// address: visits at a time, a rest between them, and a line of those who wait.
// Who finds no slot is put into the line, and called when it is its turn: the
// slot is then kept for it. So each visit costs who waits one question, however
// many wait, and those who want the same take turns.
type pool struct {
	claims []crawlDemand // of the crawls that visit at the same time
	slots  int           // the least of theirs
	gap    time.Duration // the longest of theirs
	staff  bool          // nobody is called who has no worker for it: see Limits.SetWorkers

	out   int       // visits under way
	ended time.Time // the last visit
	due   time.Time // no visit begins before: what visits have earned
	by    *Limits   // the crawl whose visit earned due; nil: of another process

	queue  []waiter // who waits, and some that have left
	first  int      // the place of line[0], counted from when the pool was met
	places map[waiter]int
	turns  map[waiter]time.Time // who was called, and from when on it can come
	visit  time.Duration        // how long visits take, a moving mean
}

// A waiter is a crawl that wants to visit a host.
type waiter struct {
	crawl *Limits
	host  string
}

// free is when the next visit may begin.
func (p *pool) free() time.Time { return latest(p.due, p.ended.Add(p.gap)) }

// enter takes a slot for a visit, of a crawl that has a claim. If there is none
// it returns false and when to ask again, unless the waiter is called before.
func (p *pool) enter(now time.Time, w waiter) (until time.Time, ok bool) {
	free := p.free()
	if !p.awaited() && p.out < p.slots && !now.Before(free) {
		p.take(w.crawl)
		return now, true
	}
	if lapsed := p.lapse(now); lapsed && !p.called(w) {
		// Those who were called do not come: who is here goes first, or with few
		// workers nobody might ever find his own turn.
		p.leave(w)
		p.keep(w, now)
	}
	if _, waits := p.places[w]; !waits && !p.called(w) {
		p.join(w)
	}
	p.callAll(now, w)
	delete(w.crawl.calls, w.host) // it is here
	switch {
	case !p.called(w), p.out >= p.slots: // of which there are less than when it was called
		until = p.guess(now, w)
	case now.Before(free):
		p.keep(w, free)
		until = free
	default:
		p.unkeep(w) // the slot is the visit's
		p.take(w.crawl)
		return now, true
	}
	p.expect(w.crawl, until)
	return until, false
}

// awaited reports whether anybody waits, or was called.
func (p *pool) awaited() bool { return len(p.places) > 0 || len(p.turns) > 0 }

// take counts a visit of crawl that begins.
func (p *pool) take(crawl *Limits) {
	p.out++
	p.engage(crawl, 1)
	if c := p.demandOf(crawl); c != nil {
		c.out++
	}
}

// give counts a visit of crawl that is over, or is not made.
func (p *pool) give(crawl *Limits) {
	if c := p.demandOf(crawl); c != nil && c.out > 0 {
		c.out--
		p.out--
		p.engage(crawl, -1)
	}
}

// engage counts n more workers of a crawl that visit hosts, or that hosts wait for.
func (p *pool) engage(crawl *Limits, n int) {
	if p.staff {
		crawl.engaged += n
	}
}

// join puts a waiter at the end of the line.
func (p *pool) join(w waiter) {
	if p.places == nil {
		p.places = map[waiter]int{}
	}
	p.places[w] = p.first + len(p.queue)
	p.queue = append(p.queue, w)
}

// call gives the slots that are free to those who have waited longest.
func (p *pool) call(now time.Time) { p.callAll(now, waiter{}) }

// callAll is call while one of those who wait is here.
func (p *pool) callAll(now time.Time, here waiter) {
	for i := 0; i < len(p.queue) && p.out+len(p.turns) < p.slots; {
		w := p.queue[i]
		place, waits := p.places[w]
		waits = waits && place == p.first+i
		switch {
		case waits && p.staff && !w.crawl.idle() && (w != here || now.Before(p.free())):
			i++ // it keeps its place
			continue
		case waits:
			delete(p.places, w)
			p.turn(w, latest(now, p.free()))
		}
		if i > 0 {
			i++
			continue
		}
		p.queue, p.first = p.queue[1:], p.first+1
	}
	if len(p.queue) > 2*len(p.places)+16 {
		p.closeUp()
	}
}

// closeUp takes those who have left out of the line.
func (p *pool) closeUp() {
	i := -1
	p.queue = slices.DeleteFunc(p.queue, func(w waiter) bool {
		i++
		place, waits := p.places[w]
		return !waits || place != p.first+i
	})
	for i, w := range p.queue {
		p.places[w] = p.first + i
	}
}

// called reports whether a slot is kept for w.
func (p *pool) called(w waiter) bool { return !p.turns[w].IsZero() }

// keep keeps a slot for w.
func (p *pool) keep(w waiter, from time.Time) {
	if p.turns == nil {
		p.turns = map[waiter]time.Time{}
	}
	if !p.called(w) {
		p.engage(w.crawl, 1)
	}
	p.turns[w] = from
}

// unkeep gives the slot back that is kept for w.
func (p *pool) unkeep(w waiter) {
	if p.called(w) {
		delete(p.turns, w)
		p.engage(w.crawl, -1)
	}
}

// turn keeps a slot for w, and tells it from when on it can come.
func (p *pool) turn(w waiter, from time.Time) {
	p.keep(w, from)
	p.expect(w.crawl, from)
	w.crawl.tell(w.host, from)
}

// lapse takes back the turns of those who did not come.
func (p *pool) lapse(now time.Time) (lapsed bool) {
	for w, since := range p.turns {
		if now.Sub(since) > patience {
			p.unkeep(w)
			lapsed = true
		}
	}
	return lapsed
}

// leave takes w out of the line, and its turn from it.
func (p *pool) leave(w waiter) {
	delete(p.places, w)
	if len(p.places) == 0 {
		p.queue = nil
	}
	if p.called(w) {
		p.unkeep(w)
		delete(w.crawl.calls, w.host)
	}
}

// end counts a visit of crawl that is over, which took so long.
func (p *pool) end(crawl *Limits, took time.Duration, end time.Time) {
	p.give(crawl)
	took = max(0, took)
	if p.visit == 0 {
		p.visit = took
	}
	p.visit += (took - p.visit) / 8
	p.ended = latest(p.ended, end)
	p.expect(crawl, p.free())
	p.rest(end)
}

// rest puts off those who were called while the rest has become longer, and
// calls who can come instead of the visit that has ended.
func (p *pool) rest(now time.Time) {
	p.settle(now)
	free := p.free()
	for w, from := range p.turns {
		if free.After(from) {
			p.turn(w, free)
		}
	}
	p.call(now)
}

// drop forgets a crawl: its claim, those of it who wait, and visits that have
// been lost with their worker.
func (p *pool) drop(crawl *Limits, now time.Time) {
	for w := range p.turns {
		if w.crawl == crawl {
			p.leave(w)
		}
	}
	for w := range p.places {
		if w.crawl == crawl {
			p.leave(w)
		}
	}
	if c := p.demandOf(crawl); c != nil {
		if c.out > 0 {
			p.out, p.ended = p.out-c.out, latest(p.ended, now)
			p.engage(crawl, -c.out)
		}
		c.out, c.until = 0, time.Time{}
	}
	p.rest(now)
}

// guess returns when it will be the turn of who is in the line, or somewhat
// later: it is called in time.
func (p *pool) guess(now time.Time, w waiter) time.Time {
	ahead := 1 + max(0, p.places[w]-p.first)/p.slots
	each := cmp.Or(p.visit, time.Second) + p.gap
	wait := time.Duration(min(1.25*float64(ahead)*float64(each)+float64(time.Second), float64(maxWaitEstimate)))
	return latest(now, p.free()).Add(wait)
}

// idle reports whether no visit is under way, nobody waits, and the rest is over.
func (p *pool) idle(now time.Time) bool {
	return p.out == 0 && !p.awaited() && !p.free().After(now)
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
