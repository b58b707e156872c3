// Package robotstools is the commands decorum robots check, batch, lint and diff, and decorum
// sitemap: they read robots.txt files and sitemaps from disk, from standard input or, by visits of
// a crawler.OnDemandCrawl, from the web. They need no crawl.
//
// Begin reading at NewRobotsCommand; batchEvaluator answers the lines of robots batch.
// Package cli calls it. It starts no goroutine but that of command.Env.WithSignalCancel, and
// has no locks.
package robotstools
