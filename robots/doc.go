// Package robots reads robots.txt and says what it allows, in the Dialect of
// one engine: Google, which follows RFC 9309 and Google's documentation of it,
// or Yandex.
//
// Parse turns a body into a File, File.For compiles what the file says to one
// Agent into Rules, and Rules.Check judges a URL. Each step is done once and
// serves the next many times over: a file is parsed when it arrives, compiled
// when a crawl starts to use it, and checked for every link. The words in
// capitals that comments name, such as MATCH-12, are requirements; the
// examples in testdata name them too. What a file says to everybody is asked of
// the File: File.Sitemaps, File.Host, and File.Cleaner for Clean-param. Covers
// tells which URLs a file speaks for.
//
// The package decides and does nothing else. It never fetches, never waits,
// never reads the clock, starts no goroutine, and no input makes it fail: what
// it cannot read it ignores, as the standard asks.
package robots
