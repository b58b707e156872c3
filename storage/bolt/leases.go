package bolt

import (
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// A lease is a URL that is leased.
type lease struct {
	*schedule.Lease[*residentOrigin]
	entry    storage.Entry
	laneSlot laneSlot // where the URL stays in the file
}

// A leaseTable has the current leases. The URL of a lease stays in its slot in the file, so that it is
// in its queue again if the process ends. Its methods require engine.mu.
type leaseTable struct {
	schedule  *schedule.Schedule[*residentOrigin]
	journal   *journal
	queues    *urlQueues
	leases    map[uint64]*lease // by token
	lastToken uint64            // the last token; its upper bits count the opens of the file
}

// leaseNext leases the next URL of o, which must have one that is due. It returns false if the record
// of the URL is missing or damaged; a damaged one it quarantines.
func (t *leaseTable) leaseNext(tx *bbolt.Tx, o *residentOrigin, now, expires time.Time) (storage.Lease, bool) {
	// Choose the lane. Whether the last lease was a revisit is part of the origin's record.
	revisited := o.revisitAlternation.LastWasRevisit
	l := o.nextLane(now)
	if revisited != o.revisitAlternation.LastWasRevisit {
		t.journal.markChanged(o)
	}

	// Take the first URL out of the lane.
	if !l.isHeadLoaded() {
		t.queues.loadHead(tx, o, l)
	}
	if l.count == 0 { // loadHead has found no URL and corrected the count
		t.schedule.UpdateOrigin(&o.Origin)
		return storage.Lease{}, false
	}
	i := t.queues.heads.pop(l)
	at := laneSlot{l.id, i.urlQueuePosition}
	o.AddURLs(l.id, -1)
	e, err := parseEntry(i.value, o.number, o.name, at)
	if err != nil {
		t.queues.quarantine(o, at, i.value, err)
		t.schedule.UpdateOrigin(&o.Origin)
		return storage.Lease{}, false
	}

	// Begin the lease; the file does not change.
	o.leasedSlots = append(o.leasedSlots, at)
	t.lastToken++
	t.leases[t.lastToken] = &lease{t.schedule.BeginLease(&o.Origin, t.lastToken, now, expires), e, at}
	return storage.Lease{
		Entry: schedule.CloneEntry(e), HostState: o.host.HostState, Token: t.lastToken, Expires: expires,
	}, true
}

// find returns the lease with the token and URL of l, nil if it has ended.
func (t *leaseTable) find(l *storage.Lease) *lease {
	if found := t.leases[l.Token]; found != nil && found.entry.URL == l.URL {
		return found
	}
	return nil
}

// renew sets the time at which a lease expires. It fails if the lease has ended or expired by now.
func (t *leaseTable) renew(l *storage.Lease, now, expires time.Time) error {
	found := t.find(l)
	if found == nil || !found.Expires.After(now) {
		return fmt.Errorf("renew %v: %w", l.URL, storage.ErrStaleLease)
	}
	t.schedule.Advance(now)
	t.schedule.RenewLease(found.Lease, expires)
	return nil
}

// markSent sets or clears Entry.Sent of a leased URL.
func (t *leaseTable) markSent(l *storage.Lease, sent bool) error {
	found := t.find(l)
	if found == nil {
		return fmt.Errorf("mark %v: %w", l.URL, storage.ErrStaleLease)
	}
	found.entry.Sent = sent
	o := found.Origin.Queue
	t.journal.putURL(o, found.laneSlot, t.queues.encode(o, found.laneSlot, &found.entry))
	return nil
}

// ack ends the lease of a.
func (t *leaseTable) ack(a *storage.Ack) error {
	l := t.find(&a.Lease)
	if l == nil {
		return fmt.Errorf("ack %v: %w", a.Lease.URL, storage.ErrStaleLease)
	}
	e := a.Lease.Entry
	e.RobotsFor, e.Sent = l.entry.RobotsFor, l.entry.Sent // the caller must not change these two
	t.endWithOutcome(l, &e, a.Outcome, a.NotBefore)
	if a.HostState != nil {
		l.Origin.Host.SetState(*a.HostState)
		t.journal.markOriginAndHostChanged(l.Origin.Queue)
	}
	t.schedule.EndLease(l.Lease)
	return nil
}

// expire ends the leases that have expired by now, and returns their URLs to the heads of their queues.
func (t *leaseTable) expire(now time.Time) {
	for {
		expired := t.schedule.ExpireNext(now)
		if expired == nil {
			return
		}
		l := t.leases[expired.Token]
		t.journal.markOriginAndHostChanged(expired.Origin.Queue)
		t.endWithOutcome(l, &l.entry, storage.Requeue, time.Time{})
		t.schedule.UpdateOrigin(expired.Origin)
	}
}

// endWithOutcome removes a leased URL from its slot, and puts e into the lane of the outcome, if any.
func (t *leaseTable) endWithOutcome(l *lease, e *storage.Entry, outcome storage.AckOutcome, at time.Time) {
	o := l.Origin.Queue
	delete(t.leases, l.Token)
	if i := slices.Index(o.leasedSlots, l.laneSlot); i >= 0 {
		o.leasedSlots = slices.Delete(o.leasedSlots, i, i+1)
	}
	if len(o.leasedSlots) == 0 {
		o.leasedSlots = nil
	}

	// Move the URL from its slot to its new lane.
	t.journal.deleteURL(o, l.laneSlot)
	if l.laneSlot.lane == schedule.AwaitingRevisit {
		t.journal.setRevisitPosition(o, requestFingerprintOf(e), noLanePosition)
	}
	switch outcome {
	case storage.Requeue:
		t.queues.put(o, schedule.LaneOf(e).ReturnedLane(), 0, e)
	case storage.RetryAt:
		t.queues.put(o, schedule.LaneOf(e).DelayedLane(), schedule.Nanos(at), e)
	case storage.RevisitAt:
		if e.RobotsFor.IsZero() { // a redirect of a robots.txt is Done
			t.queues.put(o, schedule.AwaitingRevisit, schedule.Nanos(at), e)
		}
	case storage.Park:
		t.queues.put(o, parkedLane, 0, e)
	}
}

// leasedEntriesOfOrigin returns the leased URLs of an origin.
func (t *leaseTable) leasedEntriesOfOrigin(name decorum.Origin) (leased []storage.Entry) {
	for _, l := range t.leases {
		if l.Origin.Queue.name == name {
			leased = append(leased, l.entry)
		}
	}
	return leased
}

// delayLeasedHosts postpones each host with a leased URL by its LostVisitDelay from now on, and at
// least by minDelay.
func (t *leaseTable) delayLeasedHosts(now func() time.Time, minDelay time.Duration) {
	for _, l := range t.leases {
		h := l.Origin.Queue.host
		h.PostponeUntil(now().Add(max(h.LostVisitDelay, minDelay)))
		t.journal.markOriginAndHostChanged(l.Origin.Queue)
	}
}
