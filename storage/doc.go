// Package storage defines how the state of a crawl is kept: the queues of URLs, the seen set, the
// clocks of hosts, the leases, and notes. It has the interfaces of a Store and the types that its
// calls carry. The engines are in packages of their own:
//
//   - storage/memory, for tests and for crawls that end with their process;
//   - storage/bolt, one file, for a crawl in one process that continues after a restart;
//   - storage/redis, for a crawl that many processes share.
//
// # The life of a URL
//
// Add puts a URL that the seen set does not hold into the queue of its origin. Lease takes it out
// when its host is due, for a limited time. Ack ends the lease: it says what became of the URL and
// sets the host's clock. A lease that is not acked in time expires, and its URL returns to the head
// of its queue, so that a process that dies loses no URL.
//
// Hold stops the queue of one origin. UnparkMatchingURLs queues parked URLs again, and
// RescheduleByLastmod makes pages due that await their revisit.
//
// # Use
//
//	var store storage.Store = memory.New(memory.Config{})
//	defer store.Close()
//	results, err := store.Add(ctx, entries, 0)
//	leases, wait, err := store.Lease(ctx, time.Now(), time.Minute, 10)
//	// Visit the URL of each lease; without leases, call again at wait.Until.
//	err = store.Ack(ctx, []storage.Ack{{Lease: leases[0], HostState: &storage.HostState{Due: due}}})
//
// Begin reading at Store, in storage.go. It is composed of small interfaces, so that each part of a
// crawl depends on the methods that it calls and no others: Queue leases URLs, Parking brings back
// those that are parked or await a revisit, Notes keeps values by origin and key, and HostAdmitter
// counts hosts. An engine may also be an Inspector, for reports, and an Importer, which takes over
// the contents of another Store.
//
// The methods are the steps of a crawl rather than those of a key-value store, so that each engine
// can make each of them atomic in its own way. To write an engine, or to wrap one, run the suite of
// package storagetest: it tests every sentence of this contract.
//
// The package itself keeps no state: it starts no goroutine and has no lock. It reads no clock, since
// times are arguments, and it takes no decision about a URL or a host.
package storage
