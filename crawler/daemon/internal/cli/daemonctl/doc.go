// Package daemonctl implements the commands that call a running daemon through its API: decorum
// start, pause, stop, reload, token and brake, and decorum top, which redraws a terminal. They never open
// the files of a crawl.
//
// Begin reading at NewControlCommands in control.go, NewBrakeCommand in brake.go and NewTopCommand in
// top.go. Package cli calls them;
// package crawlaccess finds the daemon.
//
// decorum top reads keys in a goroutine that ends with the process, because a read from a terminal
// cannot be cancelled. The package has no locks.
package daemonctl
