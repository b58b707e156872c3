package schedule

// UpdateOrigin updates the schedule after a change of the origin's queue, its hold or its host.
func (s *Schedule[Q]) UpdateOrigin(o *Origin[Q]) {
	s.updateCounts(o)
	h := o.Host
	if at, ok := o.computeNextDue(); ok {
		o.nextDue = at
		h.origins.PushOrMove(o)
	} else {
		h.origins.Remove(o)
	}
	s.requeueHost(h)
}

// updateCounts updates the counts of the host and the schedule, and the heaps that they belong to.
func (s *Schedule[Q]) updateCounts(o *Origin[Q]) {
	all, robotsHops := o.Queue.TotalAndRobotsHops()
	// An origin that was empty waits from now on.
	if o.queuedURLCount == 0 && all > 0 {
		o.waitingSince = max(o.waitingSince, Nanos(s.now))
	}
	s.queuedURLCount += all - o.queuedURLCount
	o.Host.queuedURLs += all - o.queuedURLCount
	o.queuedURLCount = all

	// A suspended hold counts until it ends; redirects of robots.txt are exempt.
	suspended := 0
	if o.Suspended && o.HeldUntil.After(s.now) {
		suspended = all - robotsHops
	}
	s.suspendedURLCount += suspended - o.suspendedURLCount
	o.suspendedURLCount = suspended
	if suspended > 0 {
		s.originsBySuspensionEnd.PushOrMove(originSuspensionHeapItem[Q]{o})
	} else {
		s.originsBySuspensionEnd.Remove(originSuspensionHeapItem[Q]{o})
	}
	s.updateAwaitingRevisit(o)
}

// updateAwaitingRevisit is updateCounts for pages that await their revisit.
func (s *Schedule[Q]) updateAwaitingRevisit(o *Origin[Q]) {
	n, firstDue := o.Queue.RevisitCountAndFirstDue()
	s.awaitingRevisitCount += n - o.awaitingRevisitCount
	o.awaitingRevisitCount = n
	if n == 0 {
		s.originsByRevisit.Remove(originByRevisit[Q]{o})
		return
	}
	o.earliestRevisitTime = firstDue
	if o.Suspended {
		o.earliestRevisitTime = max(firstDue, Nanos(o.HeldUntil))
	}
	s.originsByRevisit.PushOrMove(originByRevisit[Q]{o})
}

// computeNextDue returns when the next URL of the origin may be leased, false if it has none. The result
// is never earlier than waitingSince, so that the origins and hosts that are due take turns.
func (o *Origin[Q]) computeNextDue() (int64, bool) {
	at, ok := o.Queue.ReadyAt(false)
	if ok {
		at = max(at, Nanos(o.HeldUntil))
	}
	// The hold does not apply to redirects of robots.txt.
	if hopDue, hasHop := o.Queue.ReadyAt(true); hasHop && (!ok || hopDue < at) {
		at, ok = hopDue, true
	}
	return max(at, o.waitingSince), ok
}

// requeueHost updates the place of the host in hostsByDue, and the count of hosts.
func (s *Schedule[Q]) requeueHost(h *Host[Q]) {
	if hasURLs := h.queuedURLs+h.LeasesOut > 0; hasURLs != h.inHostCount {
		h.inHostCount = hasURLs
		if hasURLs {
			s.hostCount++
		} else {
			s.hostCount--
		}
	}
	if len(h.origins) == 0 || h.LeasesOut >= max(h.Slots, 1) {
		s.hostsByDue.Remove(h)
		return
	}
	h.nextDue = max(Nanos(h.Due), h.origins[0].nextDue)
	s.hostsByDue.PushOrMove(h)
}
