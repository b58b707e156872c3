// Package cli is the command line of decorum: the tree of commands, and those of them that
// crawl: crawl, serve, demo and replay; identity and version are small. The other commands
// are in packages below it, none of which imports cli: robotstools, inspectcmd, transfer and
// daemonctl. Package command holds what all of them share.
//
// Begin reading at Run and newRootCommand in root_command.go; foreground_run.go is a crawl in the
// foreground, serve.go the daemon. Package daemon calls Main and Run. A command starts
// goroutines for signals and progress, and waits for them before it returns. The locks of
// visitedHostSet and dryRun guard maps of their own, and neither is held while another is
// acquired.
package cli
