// Package client calls the scripts of a store on the servers of a cluster. It knows nothing of URLs:
// an argument is a string, and a host is a name that selects a partition.
//
// It decides which server gets a call, whether a call is repeated and after which pause, and when a
// durable call is complete: when a replica has confirmed it. It keeps the summary that each script
// returns of its partition.
//
// Begin with Client. RunUpdate and SendBatches repeat calls until they succeed, TryUpdates and
// TryQuery make them once, RunQuery reads. Below Client, a scriptTransport sends calls,
// partitionServers knows the server of each partition, and a callTracker ends calls when the client
// is closed. Packages redis and coord call a Client; package lua holds the scripts.
//
// Goroutines: InParallel starts up to 16 for one call, and waits for them. The connections have
// goroutines of rueidis, from Open to Close.
//
// Lock order: callTracker.mu comes before all other mutexes. Each call holds it for reading from
// BeginCall to its end; Close holds it for writing while it runs its last function and closes the
// connections. A goroutine must not begin a call within a call: a Close that waits between the two
// would block both. The mutexes of partitionServers, ScriptClock, each Partition and
// contextBoundDialer are leaves: no mutex is taken while one of them is held. They are held for a
// moment, but for that of partitionServers, which is held while CLUSTER SLOTS is sent, at most for
// Config.Timeout.
package client
