// Package redis keeps the state of a crawl in Redis Cluster, or in Valkey, which speaks the
// same protocol. It is the store of a crawl of many processes: all state is on the servers,
// and any number of processes may have one store open.
//
//	s, err := redis.Open(ctx, redis.Options{Addresses: []string{"10.0.0.1:6379"}, Prefix: "books"})
//	if err != nil {
//		return err
//	}
//	defer s.Close()
//	_, err = s.Add(ctx, entries, 0)
//
// A Store is a storage.Store, a storage.Inspector and a storage.Importer. It needs Redis 7 or
// newer, or Valkey, with maxmemory-policy noeviction; a cluster that serves all slots, or a
// single server that is not part of a cluster; and a replica for each master, unless
// Options.Durability is DurabilityNone. Open checks this and returns an error that says what
// is missing.
//
// The package decides which partition holds a host, which leases a process requests, what a
// call waits for before it returns, and how long hosts rest after a failover. It decides
// nothing by the clock of a process, and it keeps nothing in memory that a crash could lose.
//
// # Where to begin
//
// Store (store.go) adds, counts and closes. It embeds its other parts: urlLeaser leases URLs
// by the summaries that a summaryRefresher keeps up to date; leaseManager renews, acks and
// returns leases; leaseTTLRecorder records on the servers how long leases may run; parking
// unparks and reschedules URLs; noteStore, hostAdmitter, inspector and importer do what their
// names say. Package internal/client sends the scripts of internal/lua, finds the server of a
// partition, and repeats calls that fail. Package coord shares limits and a few values between
// processes. The daemon opens its stores in crawler/daemon/internal/datadir.
//
// # Guarantees
//
// Each verb is one script, and all keys of a host are in one hash slot. A call is therefore
// atomic for one host; a call for several hosts runs once for each partition. Every script may
// be repeated (Store.Add names an exception), and is while a server does not answer: a call
// returns when the server has answered, or when its context is done. Flush and Close wait for a
// limited time. Lease does not wait: it returns the leases of the servers that answer, and
// storage.ErrWriteStalled if none does, so that no visit starts.
//
// Replication is asynchronous: a master that dies may lose writes that it has acknowledged.
// Unless Options.Durability is DurabilityNone, Add, SetNote, MarkSent, AdmitHostsWithinLimits and
// Import therefore wait until a replica has confirmed them (WAIT), so that the links of a page
// are safe before the page is acked. An Ack waits, too, if its host then rests for longer than
// the pause after a failover (see below). With DurabilityReplica nothing is lost when one server
// dies at a time, but URLs that were leased, or acked last, may be visited again. If master and
// replicas lose power together, what is not on their disks is lost: up to one second of writes
// with appendfsync everysec. See DurabilityDisk.
//
// # Time and failovers
//
// Due times and leases go by the clock of the server that holds the host. A process and a
// server exchange times as offsets from now. Times are stored in microseconds, rounded up.
//
// A replica that takes over may lack the last leases and due times, and its clock may differ.
// Each partition stores the replication id of the master that served it last (master_replid,
// which is new after each start and each promotion). When the id has changed, the partition
// gives no lease until the longest lease has expired, and then each of its hosts rests once
// more: so no host is visited early, or by two processes. The longest lease is recorded, and
// confirmed by a replica, before the first lease is given. Options.Timeout and 2 s are added to
// it, because a master that was paused or cut off may still give leases after it was replaced.
// storage.Wait.LossGeneration tells callers of Lease that a replication id has changed: URLs
// that were lost may be new again.
//
// Each script that may change something returns a summary of its partition
// (client.PartitionSummary), and processes choose partitions by the last summaries. Each
// partition counts its changes (version), so that a process learns with one cheap read whether
// another process has changed it.
//
// # Notes
//
// Notes that were read stay in memory (Options.NoteCacheBytes) until the server reports a
// change (CLIENT TRACKING) or the connection is lost. A process sees its own notes immediately,
// and another process's notes no later than when it leases a URL of that host which the other
// has added or acked since; otherwise when the server's report arrives. If a server is silent,
// cached notes are used for about one second and Options.Timeout, and never for more than one
// minute. If the server, or the ACL of the user, does not allow CLIENT, each read goes to the
// server.
//
// # Goroutines and locks
//
// A Store starts no goroutine that outlives a call. The connections have goroutines of rueidis,
// from Open to Close. The functions of Options run in the goroutine of a call; several may run
// at the same time.
//
// Lock order: callTracker.mu of internal/client comes first. Each call holds it for reading
// until the call ends, and Close holds it for writing. A function that runs within a call must
// therefore not begin another: a Close that waits between the two would block both. Next is
// callCoalescer.callMu, held while BeforeAck runs, and then callCoalescer.mu. The mutex of one
// Ack comes before leaseTTLRecorder.mu and ScriptClock.mu. All other mutexes (of heldLeases,
// leaseTTLRecorder, summaryRefresher, and those listed in internal/client) are leaves: no mutex
// is taken while one of them is held.
//
// # Keys
//
// Hosts are divided into partitions by a hash of their names. The key prefix:store, a hash,
// holds the format and the number of partitions. All other keys begin with prefix:{tag}:, where
// the tag stands for the partition and is chosen so that partitions are spread evenly over the
// slots, and so over the servers. Those marked * exist only in the first partition.
//
//	m                    hash        totals, version, replication id, end of the pause (fence)
//	u *                  hash        work of all workers together
//	w *                  sorted set  worker                   → time of its last heartbeat
//	w:WORKER *           hash        work of one worker
//	b *                  hash        name of a shared value   → value
//	i *                  hash        number of admitted hosts
//	i:d *                hash        domain                   → number of its admitted hosts
//	s:#hosts:N *         set         fingerprints of admitted hosts, bucket N
//	a                    list        origins in the order in which they were first added
//	d                    sorted set  host with a URL to lease and a free slot → when it is due
//	o                    sorted set  token of a lease         → when the lease expires
//	l                    hash        token of a lease         → its record, and where that was
//	z                    sorted set  suspended origin         → end of its hold
//	v                    sorted set  origin with revisits     → when the first is due
//	k                    set         origins with parked URLs
//	h:HOST               hash        state of the host, number of its leases
//	p:HOST               sorted set  origin of the host       → when it has a URL to lease
//	o:ORIGIN             hash        hold, counts, length of each lane
//	q:ORIGIN:LANE:RANK   list        records, in lanes that are not timed
//	r:ORIGIN:LANE        sorted set  ranks above 0 that have a list
//	t:ORIGIN:LANE        sorted set  record (lane 14: fingerprint) → not before
//	x:ORIGIN             hash        fingerprint              → record of a page that awaits its revisit
//	s:ORIGIN:N           set         fingerprints of the seen set, bucket N
//	k:ORIGIN             list        records of parked URLs
//	n:ORIGIN             hash        notes; ORIGIN is empty for the notes of the crawl
//
// A record is an encoded storage.Entry. Lanes are those of storage/internal/schedule.
// Internal/lua/schedule.lua lists the fields of m, h:HOST and o:ORIGIN. A URL in a list takes
// about its own length, a fingerprint eight to nine bytes.
//
// # Keys after each verb
//
// Each verb that changes something also raises the version in m, except SetNote for a known
// origin. Verbs that change a queue, a lease or a hold bring the totals in m, d, p:HOST, v and z
// up to date. A verb that waits for a replica also writes the field waits of m.
//
//	Add                     a and o:ORIGIN have the origin, s:ORIGIN:N the fingerprint (not for redirects
//	                        of robots.txt), q:ORIGIN:LANE:RANK the record at its tail
//	Lease                   the record has moved from q:, t: or x: into l; o has the token; m has the
//	                        replication id. Leases that have expired are ended first: their records
//	                        are at the head of q:ORIGIN:5:0, or of q:ORIGIN:1:0 for redirects of the
//	                        origin's own robots.txt
//	Renew                   o has the later expiry
//	MarkSent                l has the changed record
//	Ack                     l and o have lost the token, h:HOST has Ack.HostState, and the record is
//	  Done, Drop            in no key; its fingerprint stays in s:ORIGIN:N
//	  Requeue               at the head of q:ORIGIN:5:0 or q:ORIGIN:1:0
//	  RetryAt               in t:ORIGIN:LANE
//	  RevisitAt             in x:ORIGIN, its fingerprint in t:ORIGIN:14
//	  Park                  at the tail of k:ORIGIN; k has the origin
//	Hold                    o:ORIGIN has the hold; z has the origin if it is suspended and has URLs queued
//	UnparkMatchingURLs      matching records have moved from k:ORIGIN to q:, others to the tail of k:ORIGIN
//	RescheduleByLastmod     x:ORIGIN has the changed record, t:ORIGIN:14 the earlier time
//	SetNote                 n:ORIGIN has the note, or has lost it
//	AdmitHostsWithinLimits  i, i:d and s:#hosts:N count the new hosts
//	Import                  the keys are those of the dump; import in m names the call
//	Flush                   n: of every partition has a note "flushed", and o: exists; nothing changes
//	                        if all is confirmed already, or with DurabilityNone
//	Close                   the records of leases are back in the places that they had; then as Flush
//	Heartbeat (coord)       u, w and w:WORKER have the counts of the worker
//	CompareAndSet (coord)   b has the value, m the new version of b
//
// Before a lease may run longer than any before it, Lease and Renew write longest into m.
//
// When all URLs of an origin are done, a, o:ORIGIN and s:ORIGIN:N remain, h:HOST if the host has a
// state, and n:ORIGIN if there are notes. No verb deletes these.
package redis
