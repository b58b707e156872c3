// Package inspect answers questions about a crawl, whether it runs or not: reports of hosts,
// what became of one URL and why, lists of hosts, numbers of the frontier, robots.txt files,
// and parameters that do not change a page. It changes nothing in the stores.
//
// Begin reading at Inspector. Commands ask it over the files of a stopped crawl; the daemon
// asks it over the stores of a running one. Answers are types of the API; the package
// leaves tables and colors to the commands.
//
// Its one goroutine is a timer of HostListCache, which frees lists that are no longer
// asked for. HostListCache.mu guards the lists and the timer.
package inspect
