// Package stoppedcrawl opens the state of a crawl that no process runs, for commands that read or
// export it or add URLs to it. It holds the lock of the data directory while the crawl is open. It
// never sends a request, and never changes the project file.
//
// Begin reading at Open and OpenAndDo. Packages inspectcmd and transfer call them, and so does the
// dry run of package cli.
//
// The only goroutine is that of command.Env.WithSignalCancel. The package has no locks in memory.
package stoppedcrawl
