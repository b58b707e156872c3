// Package crawlaccess decides what a command connects to: a daemon, through its socket or its
// address; a crawl in the foreground, through its socket; or the files of a crawl that no process
// runs.
//
// Begin reading at CrawlTargetFlags.Do and FindRunning, which give a command an api.Inspector.
// Packages inspectcmd and transfer call them; package daemonctl uses only DaemonFlags.
//
// The only goroutine is that of command.Env.WithSignalCancel. The package has no locks. It never
// changes a crawl. Without --server and --token-file it never sends the token of a daemon that does
// not run to the default address, where another user of the machine may listen.
package crawlaccess
