// Package crawlaccess finds what a command talks to: a daemon by its socket or its address, a
// crawl that runs in the foreground by its socket, and the files of a crawl that no process
// runs.
//
// Begin reading at CrawlTargetFlags.Do, which hands a command an api.Inspector. Packages inspectcmd
// and transfer call it; package daemonctl uses DaemonFlags alone. It starts no goroutine but
// that of command.Env.WithSignalCancel, and has no locks.
package crawlaccess
