// Package supervisor runs the projects of a daemon: it follows their files, starts and stops
// their crawls as users want, keeps their stores open while they are in use, and shares
// brakes, limits and memory between them. It implements api.Daemon.
//
// Begin reading at Open and Supervisor.Run, then at projectRunner in runner.go, which owns
// the goroutine of one project. decorum serve calls it; package server serves it.
//
// Supervisor.Run starts a goroutine that follows the project files, one that watches the
// memory, and one for each project; they end with its context, and Supervisor.Close waits
// for them. Project locks are taken after those of the Supervisor; the lock of a
// storeHandle is released while stores open or close.
package supervisor
