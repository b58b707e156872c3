// Package stoppedcrawl opens the state of a crawl that no process runs, for commands that
// read or export it or add URLs to it. It holds the lock of the data directory while the
// crawl is open.
//
// Begin reading at Open and OpenAndDo. Packages inspectcmd and transfer call it, and the dry
// run of package cli. It starts no goroutine but that of command.Env.WithSignalCancel, and
// has no locks in memory.
package stoppedcrawl
