// Package cli implements the decorum command line. It builds the tree of commands and holds the
// commands that crawl (crawl, serve, demo and replay) and two small ones (identity and version).
// The packages robotstools, projectcmd, inspectcmd, transfer and daemonctl below it hold the other
// commands; none of them imports cli. Package command holds what all commands share, and package
// completion completes their values in shells.
//
// Begin reading at Run and newRootCommand in root_command.go. foreground_run.go runs a crawl in the
// foreground, dryrun.go and dryrun_forecast.go implement crawl --dry-run, and serve.go runs the
// daemon. Package daemon calls Main and Run:
//
//	os.Exit(cli.Run(handlers, "crawl", "-c", "books.yaml"))
//
// A command decides only which flags, files and exit codes it has. What a crawl does is decided in
// package engine and the packages below crawler.
//
// Each command starts its own goroutines, for signals, progress, the crawl's socket and the
// daemon's listeners, and waits for them before it returns. The exception is a third signal to crawl
// or serve: it ends the process at once. In the packages below, a read from a terminal can outlast its
// command, and ends with the process.
//
// visitedHostSet.mu, forbiddenHosts.mu and dryRun.mu guard maps. No code holds one of them while it acquires another
// lock. openQuestions in foreground_run.go keeps the engine open: a query through the crawl's socket holds
// it for reading while it uses the engine, and takes the engine's locks.
package cli
