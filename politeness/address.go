package politeness

import (
	"cmp"
	"math"
	"time"
)

// patience is how long an address keeps a slot free for a host that was called.
const patience = 10 * time.Second

// longestGuess bounds for how long a host that waits for its address is told
// to stay away, in case nobody calls it: a crash could leave it waiting.
const longestGuess = 10 * time.Minute

// An address is what many hosts may share: slots, a pace, and a line of hosts
// that wait. A host that finds no slot is put into the line, and called when it
// is its turn: the slot is then kept for it. So each visit costs a waiting
// host one question, however many wait.
type address struct {
	slots int
	delay time.Duration

	taken  int       // slots that visits have, or that are kept for hosts that were called
	free   time.Time // no visit begins before: the rest after the last one is over then
	line   []string  // hosts that wait, and some that have left
	first  int       // the place of line[0], counted from when the address was met
	places map[string]int
	turns  map[string]time.Time // hosts that were called, and from when on they can come
	visit  time.Duration        // how long visits take, a moving mean
	calls  map[string]time.Time // hosts to be told of their turn, of all addresses
}

func newAddress(cfg LimitsConfig, calls map[string]time.Time) *address {
	a := &address{slots: cfg.IPConcurrency, delay: cfg.IPDelay, calls: calls,
		places: map[string]int{}, turns: map[string]time.Time{}}
	if a.slots <= 0 {
		a.slots = math.MaxInt
	}
	if !cfg.Restarted.IsZero() {
		a.free = cfg.Restarted.Add(a.delay)
	}
	return a
}

// enter takes a slot for a visit of host. If there is none it returns false
// and when to ask again, unless the host is called before.
func (a *address) enter(now time.Time, host string) (until time.Time, ok bool) {
	if lapsed := a.lapse(now); lapsed > 0 && !a.called(host) {
		// Those who were called do not come: who is here goes first, or with few
		// workers nobody might ever find his own turn.
		a.leave(host)
		a.taken++
		a.turns[host] = now
	}
	if _, waits := a.places[host]; !waits && !a.called(host) {
		a.places[host] = a.first + len(a.line)
		a.line = append(a.line, host)
	}
	a.call(now)
	delete(a.calls, host) // it is here
	switch {
	case !a.called(host):
		return a.guess(now, host), false
	case now.Before(a.free):
		a.turns[host] = a.free
		return a.free, false
	}
	delete(a.turns, host) // the slot is the visit's
	return now, true
}

// call gives the slots that are free to the hosts that waited longest.
func (a *address) call(now time.Time) {
	for len(a.line) > 0 && a.taken < a.slots {
		host := a.line[0]
		place, waits := a.places[host]
		if waits && place == a.first {
			delete(a.places, host)
			a.turn(host, latest(now, a.free))
			a.taken++
		}
		a.line, a.first = a.line[1:], a.first+1
	}
}

// called reports whether a slot is kept for host.
func (a *address) called(host string) bool { return !a.turns[host].IsZero() }

// turn says from when on a host that has a slot can come.
func (a *address) turn(host string, from time.Time) {
	a.turns[host], a.calls[host] = from, from
}

// lapse takes back the turns of hosts that did not come.
func (a *address) lapse(now time.Time) (lapsed int) {
	for host, since := range a.turns {
		if now.Sub(since) > patience {
			delete(a.turns, host)
			a.taken--
			lapsed++
		}
	}
	return lapsed
}

// leave takes host out of the line, and its turn from it.
func (a *address) leave(host string) {
	delete(a.places, host)
	if a.called(host) {
		delete(a.turns, host)
		delete(a.calls, host)
		a.taken--
	}
}

// ended gives a slot back at the end of a visit that began at since.
func (a *address) ended(since, end time.Time) {
	a.taken--
	took := max(0, end.Sub(since))
	if a.visit == 0 {
		a.visit = took
	}
	a.visit += (took - a.visit) / 8
	a.free = latest(a.free, end.Add(a.delay))
	for host, from := range a.turns {
		if a.free.After(from) {
			a.turn(host, a.free)
		}
	}
	a.call(end)
}

// guess returns when it will be the turn of a host in the line, or somewhat
// later: it is called in time.
func (a *address) guess(now time.Time, host string) time.Time {
	ahead := 1 + (a.places[host]-a.first)/a.slots
	each := cmp.Or(a.visit, time.Second) + a.delay
	wait := time.Duration(min(1.25*float64(ahead)*float64(each)+float64(time.Second), float64(longestGuess)))
	return latest(now, a.free).Add(wait)
}

// idle reports whether there is nothing to remember.
func (a *address) idle(now time.Time) bool {
	return a.taken == 0 && len(a.places) == 0 && !a.free.After(now)
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
