package politeness

import "time"

// SetWorkers says how many visits at a time the crawl can make: not many more
// hosts are kept for it, while other crawls wait for them. 0: any number.
func (l *Limits) SetWorkers(n int) {
	l.lock()
	defer l.unlock()
	l.workers = n
}

// ahead is for how many hosts a worker is kept busy: while it visits one, the
// rests of the others go by.
const ahead = 4

// idle reports whether the crawl has a worker for one more host. It requires the
// lock.
func (l *Limits) idle() bool { return l.workers <= 0 || l.engaged < ahead*l.workers }

// Knows reports whether anything is remembered of a host. If not, no visit in
// this process has earned it a rest that is not over.
func (l *Limits) Knows(host string) bool {
	l.lock()
	defer l.unlock()
	return l.hosts.hosts[host] != nil
}

// Owe lets nobody visit a host before due, because of a visit that another
// process made, nor before the rest that is wished for has passed since ended,
// when its last visit may have ended.
func (l *Limits) Owe(now time.Time, host string, ended, due time.Time) {
	l.lock()
	defer l.unlock()
	p := l.hosts.meet(now, host)
	p.ended = latest(p.ended, ended)
	if due.After(p.due) {
		p.due, p.by = due, nil
	}
	p.rest(now)
}

// Withdraw ends the part that the crawl has in what it shares: it does not wait
// for a turn any more, and slows nobody. Call it when no visit is under way; one
// of which nobody knows the end has ended now. The Limits may be used again.
func (l *Limits) Withdraw(now time.Time) {
	l.lock()
	defer l.unlock()
	for _, p := range l.hosts.hosts {
		p.drop(l, now)
	}
	for _, p := range l.hosts.addresses {
		p.drop(l, now)
	}
	for w := range l.hosts.homes {
		if w.crawl == l {
			delete(l.hosts.homes, w)
		}
	}
	clear(l.calls)
}
