// Package oneoff fetches single files through the gate, the limiter and the fetcher of a
// crawl, for commands that run no crawl: robots.txt files to be checked, sitemaps, and the
// robots.txt that decorum explain --fetch asks for.
//
// Begin reading at Fetcher. Packages robotstools and inspectcmd call it. It starts no
// goroutine; a Fetcher is used by one goroutine at a time, and has no locks.
package oneoff
