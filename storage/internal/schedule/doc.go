// Package schedule decides which host and which of its origins is next: it has the clocks of hosts, the
// holds of origins, the slots and the expiry of leases. It serves the engines that keep their state in
// one process, storage/memory and storage/bolt.
//
// An engine keeps the URLs and implements OriginURLQueue for each origin. It creates a Host and an
// Origin for each, and tells the Schedule of every change:
//
//	o.HeldUntil = until // or its queue or host changes
//	s.UpdateOrigin(o)
//	...
//	s.Advance(now)
//	for l := s.ExpireNext(now); l != nil; l = s.ExpireNext(now) { ... }
//	if o := s.NextOrigin(now); o != nil {
//		// Remove a URL from o.Queue.
//		l := s.BeginLease(o, token, now, expires)
//	}
//	wait := s.Wait()
//
// Begin reading at Schedule and UpdateOrigin. lane.go defines the order of the URLs within an origin,
// and evicted.go keeps stubs of the hosts that an engine has on disk only. Every method costs at most
// the logarithm of the number of hosts, apart from Counts, which looks at every due host.
//
// The package holds no URLs and reads no clock. It starts no goroutine and has no lock: the engine
// calls it with its own.
package schedule
