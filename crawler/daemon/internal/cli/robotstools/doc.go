// Package robotstools implements the commands decorum robots check, batch, lint and diff, and decorum
// sitemap. They read robots.txt files and sitemaps from disk, from standard input or from the web,
// and need no crawl. A crawler.OnDemandCrawl makes all requests: it fetches a sitemap only if
// robots.txt allows it, and visits a host only when the host is due.
//
// Begin reading at NewRobotsCommand in check.go and NewSitemapCommand in sitemap.go. batchEvaluator
// in batch.go answers the lines of robots batch. Packages robots, robots/lint and sitemap decide;
// this package only loads files and prints. Package cli calls it.
//
// The only goroutine is that of command.Env.WithSignalCancel. The package has no locks.
package robotstools
