// Package cli is the command line of decorum: one file a command, with the flags, the help
// and the output of each. It turns arguments into projects, asks the other packages of the
// daemon to crawl or to inspect, and turns their errors into exit codes.
//
// Begin reading at Run and newRootCommand in command.go; run.go is a crawl in the
// foreground, serve.go the daemon. Package daemon calls Main and Run. A command starts
// goroutines for signals and progress, and waits for them before it returns.
package cli
