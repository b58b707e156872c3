// Package supervisor runs the projects of a daemon. It follows their files, starts and stops
// their crawls as users want, keeps their stores open while they are in use, and shares brakes,
// limits and memory between them. It implements api.Daemon. It decides which project runs and
// why another does not; it decides nothing about a URL, and it parses no HTTP request.
//
// Begin reading at Open and Supervisor.Run in supervisor.go, then at projectRunner.runCommandLoop
// in runner.go, the loop of one project. decorum serve opens a Supervisor; package server serves it.
//
// The parts of a Supervisor are runnerSet (all runners), projectFilesFolder and projectLoader (the
// project files), operatorBrakes, retiredKeyrings, memoryKillDetector, daemonStateStore
// (daemon.json: what must survive a crash) and eventBroker. The parts of a projectRunner are
// projectLifecycle (its command, and the state that the project is in), currentEngine, storeHandle,
// storeAvailability, projectOutputs and projectStatsTracker. No part knows the Supervisor or the
// runner.
//
// # Goroutines
//
//   - projectFilesFolder.watch: Supervisor.Run starts it; it ends with the context of Run, which waits.
//   - One sample per project and second: Supervisor.Run starts them and waits for them at each tick.
//   - projectRunner.runCommandLoop, one per project: runnerSet.addAndStart starts it. It ends when
//     Supervisor.Close or DeleteProject sets mustQuit, and closes projectRunner.ended; both wait for that.
//   - CrossProcessBrakes, one per Redis store: operatorBrakes.getOrStartSharedBrakes starts it.
//     startUsedCloseUnused ends it when the last project leaves the store, closeAllStores at the end of
//     the daemon; both wait.
//   - The heartbeats of a crawl that several processes share: projectRunner.crawlLoadedProject starts
//     them, and ends them before it returns.
//   - Supervisor.Close runs one goroutine per runner, to close the stores side by side, and waits.
//   - Timers: storeHandle.release closes unused stores after idleCloseDelay;
//     projectRunner.retryCommandLater repeats a command. Neither is stopped: after the end of the
//     project both do nothing.
//
// # Locks
//
// A goroutine that holds a lock takes only locks that are to the right of it:
//
//	Supervisor.projectFilesMu > storeHandle.mu > currentEngine.mu > projectLifecycle.mu
//	storeAvailability.mu > projectLifecycle.mu > projectStatsTracker.mu, daemonStateStore.mu, eventBroker.mu
//	operatorBrakes.mu > operatorBrakes.storesMu, daemonStateStore.mu, eventBroker.mu
//	eventBroker.mu > eventSubscriber.mu
//
// A holder of Supervisor.projectFilesMu also takes runnerSet.mu, daemonStateStore.mu, eventBroker.mu
// and retiredKeyrings.mu. DeleteProject holds it while it waits for a runner and for queries, so neither
// may take it. Holders of runnerSet.mu, retiredKeyrings.mu, memoryKillDetector.mu, projectOutputs.mu or
// diskFullState.mu take no other lock of this package. A storeHandle releases its lock while stores open
// or close.
package supervisor
