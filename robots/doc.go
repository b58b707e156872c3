// Package robots reads robots.txt and says what it allows, in the Dialect of
// one engine: Google, which follows RFC 9309 and Google's documentation of it;
// Yandex; or GoogleOSS, which is Google's published parser to the letter.
//
// Parse turns a body into a File, File.RulesFor compiles what the file says to one
// Agent into Rules, and Rules.Check judges a URL. Each step is done once and
// serves the next many times over: a file is parsed when it arrives, compiled
// when a crawl starts to use it, and checked for every link. The words in
// capitals that comments name, such as MATCH-12, are requirements; the
// examples in testdata name them too. What a file says to everybody is asked of
// the File: File.Sitemaps, File.MainMirror, and File.URLCleaner for Clean-param. RobotsURLAppliesTo
// tells which URLs a file speaks for.
//
// Package robots/gate does this for a crawl, over the life of its files: it says which file
// must be fetched when, and clears URLs. Package robots/aiuse reads what a site asks of the
// use of its content, from the lines that File.LinesFor returns. Package robots/lint tells
// the owner of a file what is wrong with it and what a new version changes.
//
// The package decides and does nothing else. It never fetches, never waits,
// never reads the clock, starts no goroutine, and no input makes it fail: what
// it cannot read it ignores, as the standard asks.
package robots
