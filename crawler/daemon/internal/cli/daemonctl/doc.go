// Package daemonctl is the commands that call a running daemon through its API: decorum
// brake, and decorum top, which redraws a terminal.
//
// Begin reading at clientOptions in client.go, which finds the daemon at its socket or its
// address. Package cli calls it. decorum top reads keys in a goroutine that ends with the
// process, since a read of a terminal cannot be ended. The package has no locks.
package daemonctl
