// Package client calls the scripts of a store on the servers of a cluster. It knows no
// URLs: an argument is a string, and a host a name that says which partition is asked.
//
// It decides which server is asked, whether a call is made again and after which pause,
// and when a call that must not be lost is done: when a replica has confirmed it. It keeps
// the summary that each script returns of its partition.
//
// Begin with Client: RunUpdate and SendBatches make calls until they are done, TryUpdates
// makes them once, RunQuery reads. Below it a scriptTransport sends calls,
// partitionServers knows which server has which partition, and a callTracker ends what
// waits when the client is closed. Packages redis and coord call a Client; package lua
// holds the scripts.
//
// Its goroutines are those of a call that asks several servers: they end before the call
// does. The connections and their goroutines are those of rueidis, from Open to Close.
//
// The mutexes of callTracker, partitionServers, ScriptClock, each Partition and the dialer guard
// the fields below them. A call holds that of callTracker for reading until it ends; Close
// holds it for writing while it does what is left. The others are held for a moment, no two
// at a time, but that partitionServers is locked while it asks the cluster.
package client
