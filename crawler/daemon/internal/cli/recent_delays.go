package cli

import (
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/politeness"
)

// recentDelays holds the delays after the latest visits. The progress shows the most frequent one.
type recentDelays struct {
	mu     sync.Mutex // guards visits and count
	visits [64]delayAfterVisit
	count  int // of all visits; visits is a ring
}

// A delayAfterVisit is the time that a host gets for each visit, and why.
type delayAfterVisit struct {
	perVisit time.Duration // the delay, divided by the visits that the host allows at a time
	reason   politeness.DelayReason
	due      time.Time // of the host's next visit
}

// holds reports whether the delay is likely to hold the host's next visit up: it does at now, or did so
// recently, and the next visit may be under way. Otherwise the host has no URL, or waits for something else.
func (d delayAfterVisit) holds(now time.Time) bool {
	return now.Before(d.due.Add(max(5*time.Second, 2*d.perVisit)))
}

// add adds the delay after v.
func (r *recentDelays) add(v *crawler.Visit) {
	perVisit := v.NextVisit.Delay / time.Duration(max(v.NextVisit.HostSlots, 1))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.visits[r.count%len(r.visits)] = delayAfterVisit{perVisit, v.DelayReason, v.NextVisit.Due}
	r.count++
}

// mostFrequent returns the most frequent reason of the delays that hold at now, and the latest delay with
// it; zero if none holds.
func (r *recentDelays) mostFrequent(now time.Time) (delay time.Duration, reason politeness.DelayReason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts, most := map[politeness.DelayReason]int{}, 0
	for i := max(r.count-len(r.visits), 0); i < r.count; i++ { // the oldest first
		v := r.visits[i%len(r.visits)]
		if !v.holds(now) {
			continue
		}
		counts[v.reason]++
		if counts[v.reason] >= most {
			most, delay, reason = counts[v.reason], v.perVisit, v.reason
		}
	}
	return delay, reason
}

// shortest returns the shortest of the delays that hold at now; 0 if none holds.
func (r *recentDelays) shortest(now time.Time) (delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	isKnown := false
	for _, v := range r.visits[:min(r.count, len(r.visits))] {
		if v.holds(now) && (!isKnown || v.perVisit < delay) {
			delay, isKnown = v.perVisit, true
		}
	}
	return delay
}
