// Package supervisor runs the projects of a daemon: it follows their files, starts and stops
// their crawls as users want, keeps their stores open while they are in use, and shares
// brakes, limits and memory between them. It implements api.Daemon.
//
// Begin reading at Open and Supervisor.Run, then at projectRunner in runner.go, which owns
// the goroutine of one project. decorum serve calls it; package server serves it.
//
// The parts of a Supervisor are runnerSet (all runners), projectFilesFolder and projectLoader (the
// project files), operatorBrakes, retiredKeyrings, memoryKillDetector, daemonStateStore (the
// file of what must survive) and eventBroker. Those of a projectRunner are projectLifecycle (its
// command, and what it does), currentEngine, storeHandle, storeAvailability, projectOutputs
// and projectStatsTracker. No part knows the Supervisor or the runner.
//
// Supervisor.Run starts a goroutine that follows the project files, and each second one for
// each project that samples its throughput; Run waits for them when its context ends.
// runnerSet.addAndStart starts the goroutine of a runner, and operatorBrakes one for each
// Redis store; Supervisor.Close ends both and waits.
//
// Locks are taken in this order: Supervisor.projectFilesMu, runnerSet.mu or operatorBrakes.mu,
// operatorBrakes.storesMu; storeHandle.mu, currentEngine.mu or storeAvailability.mu,
// projectLifecycle.mu, projectStatsTracker.mu; then those of daemonStateStore and eventBroker. A
// storeHandle releases its lock while stores open or close.
package supervisor
