// Package inspect answers queries about a crawl, whether it runs or not: reports on hosts,
// explanations of one URL, lists of hosts, numbers of the frontier, robots.txt files, query
// parameters that do not change a page, and the records of the ledger. It decides how a report sums
// up hosts, and which reason it gives for a URL that is not visited. It changes nothing in the
// stores, except that RunningCrawl and AddURLs add URLs.
//
// Begin reading at Inspector in inspector.go. Package stoppedcrawl makes one over the files of a
// stopped crawl; RunningCrawl makes one for each query to a daemon or to a crawl in the foreground.
// Results are types of package api; the commands and pages format them.
//
// Its goroutines: streamInspection starts one for each streamed result, which ends before the
// iteration returns; and a timer of HostListCache frees expired lists. Both locks are leaves:
// HostListCache.mu and HostListSnapshot.mu are never held together, and HostListCache.buildSlot is
// acquired before HostListCache.mu.
package inspect
