// Package engine assembles a crawl from a project: stores, frontier, robots gate, fetchers, politeness,
// outputs and callbacks. It also holds what crawls share: SharedResources within one process,
// CrossProcessBrakes and MultiProcessCoordinator between processes whose state is in Redis.
//
// Begin reading at Config.NewEngine in engine.go. A foreground crawl, a dry run, a replay and the
// daemon's projects call it. The inspector uses Config.NewWithoutCrawler. The package knows no command,
// no type of the API and no terminal, and it opens no store of a project.
//
// # Goroutines
//
//   - StartCrossProcessBrakes starts CrossProcessBrakes.poll, which opens the shared store and reads the
//     brakes of other processes from it. CrossProcessBrakes.Close ends it and waits.
//   - MultiProcessCoordinator.StartHeartbeats starts a loop that exchanges heartbeats with the other
//     workers of the crawl. The function that it returns ends the loop, waits, and reports that this
//     worker leaves.
//
// # Locks
//
// CrossProcessBrakes has no lock: its fields are atomic, or written before storeOpened is closed.
// A holder of MultiProcessCoordinator.mu may call politeness.Limiter and onLimitCountsReset, which must
// not call back. A holder of DiscoveryRefusalReporter.mu takes no other lock of this module.
package engine
