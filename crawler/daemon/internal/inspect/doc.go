// Package inspect answers questions about a crawl, whether it runs or not: reports of hosts,
// what became of one URL and why, lists of hosts, numbers of the frontier, robots.txt files,
// parameters that do not change a page, and the records of the ledger. It changes nothing in
// the stores, but that RunningCrawl and AddURLs add URLs.
//
// Begin reading at Inspector. Package stoppedcrawl makes one over the files of a stopped
// crawl; RunningCrawl makes one for each question to a daemon, or to a crawl in the
// foreground. Answers are types of the API; the package leaves tables to the commands.
//
// Its one goroutine is a timer of HostListCache, which frees lists that are no longer
// asked for. HostListCache.mu guards the lists and the timer.
package inspect
