// Package engine assembles a crawl from a project: stores, frontier, robots gate, fetchers,
// politeness, outputs and callbacks, and what crawls of one process or of several share.
//
// Begin reading at Config.NewEngine. A foreground crawl, a dry run, a replay and the daemon's
// projects call it; the inspector uses Config.NewWithoutCrawler. The package knows no
// command, no type of the API and no terminal.
//
// StartCrossProcessBrakes starts a goroutine that reads the brakes of other processes in Redis;
// CrossProcessBrakes.Close ends it. MultiProcessCoordinator.StartHeartbeats starts one that
// exchanges limits with other processes; the function that it returns ends it. Each lock
// guards one type and is held while no other is taken.
package engine
