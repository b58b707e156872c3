// Package redis keeps the state of a crawl in Redis Cluster, or in Valkey, which
// speaks the same. It is the engine of a crawl of many processes: all of its state is
// in the servers, and any number of processes may have one store open.
//
// Open gives a storage.Store, which is a storage.Inspector too. It wants Redis 7 or
// newer, or Valkey, maxmemory-policy noeviction, a cluster in order and, unless
// Options.Durability is DurabilityNone, a replica for each master. A single server that is no
// cluster does as well. What Redis is short of is said at once, by Open.
//
// # Where to begin
//
// Store adds, counts and closes; its other methods are those of the parts that it embeds: a
// urlLeaser gives leases by what a summaryRefresher knows of the partitions, a leaseManager
// renews and ends them, a leaseTTLRecorder has partitions note how long leases may run, and
// the others are named after what they hold. Package internal/client sends the scripts of internal/lua, knows
// which server has which partition, and calls again what failed. Package coord has what
// processes share beside a store. The daemon's stores are opened by its package datadir.
//
// A Store starts no goroutine that outlives a call, beside those of its connections, which
// Close ends. Each lock is held for a moment, and no other with it, but that of the
// callCoalescer of BeforeAck, which is held while that is called, and those of internal/client.
//
// # What is promised
//
// A verb is one script, and the keys of a host are in one slot: for a host it is
// carried out whole or not at all, for several hosts one after another. Every script
// may be sent again, and is, while a server does not answer: calls wait until it does,
// or until their context is done. Only Lease does not wait: it gives out what other
// servers have, and returns storage.ErrWriteStalled when none answers, so that nothing is
// visited.
//
// Replication is asynchronous: what a master has said it may take with it. So Add
// and SetNote wait until a replica has confirmed (WAIT), and links that were added are
// there when their page is acked. So does an Ack after which a host rests for longer than
// what is said of failovers below makes up for. Nothing is lost when one server dies at a
// time; what was in hand, or acked last, may be visited again. If master and replicas lose
// power together, what is not on their disks is lost, and that is up to a second by
// appendfsync everysec: see DurabilityDisk.
//
// # Time
//
// Due times and leases go by the clock of the server that holds the host, and by no
// other: what a process is told, and tells, is how far off they are. Times are kept
// in microseconds, rounded up.
//
// A replica that takes over may not know the last leases and due times, and its clock
// may be another's. Each partition remembers under which reign of a master it was served
// last (master_replid, which is new with each start and each promotion). When that has
// changed it gives out nothing until the longest lease has run out, and then each of its
// hosts rests once more: no host is visited early, or by two. How long leases may run, a
// replica has confirmed before the first is given. To that come Options.Timeout and 2 s, for
// a master that was stopped, or cut off, may give leases yet when it has been replaced.
// Whoever is given leases is told of another reign (storage.Wait.LossGeneration): what was lost may
// be new again.
//
// What a process knows of the partitions is what calls have said of them. Each counts
// its changes, so that to look whether others have changed one costs little.
//
// # Notes
//
// Notes that were read stay in memory (Options.NoteCacheBytes) until the server tells that
// they have changed (CLIENT TRACKING), or the connection to it is lost. A process reads
// what it set itself at once, and what another set before it acked, or added, a URL of
// that host when it leases that; else as soon as word of it has come. From a server
// that is silent what is in memory is told for about a second and Options.Timeout, and
// nothing for more than a minute. Where a server, or the ACL of the user, does not
// allow CLIENT, notes are read each time.
//
// # Keys
//
// prefix:store is a hash of the format, and of the number of partitions.
//
// Hosts are cut into partitions by their names. All keys of a partition begin with
// prefix:{tag}:, and tags are chosen so that slots, and so servers, have equal shares.
// Scripts are in internal/lua, and say what they take and return.
//
//	m            hash        sums; the reign under which it was served last, its fence
//	u            hash        what all workers have done together (of the first partition)
//	w            sorted set  workers                              → when they were heard of (likewise)
//	w:WORKER     hash        what a worker has done (likewise)
//	b            hash        the board: values by name (of the first partition)
//	i            hash        how many hosts are counted (of the first partition)
//	i:d          hash        domain → how many of them are of it (likewise)
//	s:#hosts:N   set         fingerprints of hosts that are counted: a part of them (likewise)
//	a            list        origins that were met
//	d            sorted set  hosts to be leased                    → when they are due
//	o            sorted set  tokens of leases                      → when they run out
//	l            hash        token → where the lease was taken from, and its record
//	z            sorted set  origins under a dormant hold          → its end
//	v            sorted set  origins with pages that rest          → when the first is due
//	k            set         origins with parked URLs
//	h:HOST       hash        clock, leases that are out
//	p:HOST       sorted set  its origins that have something       → from when on
//	o:ORIGIN     hash        hold, counts, length of each lane
//	q:ORIGIN:LANE:RANK  list       records, in lanes that are not timed
//	r:ORIGIN:LANE       sorted set ranks above 0 that have a list
//	t:ORIGIN:LANE       sorted set records                         → not before
//	x:ORIGIN     hash        fingerprint → record of a page that rests
//	s:ORIGIN:N   set         fingerprints that were seen: a part of them
//	k:ORIGIN     list        records that are parked
//	n:ORIGIN     hash        notes
//
// Lanes are those of package schedule in storage/internal. A list holds the URLs of
// an origin in about their own length; a fingerprint takes eight to nine bytes.
package redis
