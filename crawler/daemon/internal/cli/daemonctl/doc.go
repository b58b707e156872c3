// Package daemonctl is the commands that call a running daemon through its API: decorum
// brake, and decorum top, which redraws a terminal.
//
// Begin reading at NewBrakeCommand. Package cli calls it; package crawlaccess finds the
// daemon. decorum top reads keys in a goroutine that ends with the process, since a read of
// a terminal cannot be ended. The package has no locks.
package daemonctl
