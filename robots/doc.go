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
// the File: File.Sitemaps, File.MainMirror, and File.URLCleaner for Clean-param. Covers
// tells which URLs a file speaks for.
//
// A Gate does this for a crawl, over the life of its files. Gate.Check gives the
// Clearance for a URL, without which it must not be fetched; one for the robots.txt,
// if that must come first; or why neither may be, and until when. Gate.RecordFetch is told
// what came of that fetch: RFC 9309 says what each status means and for how long.
// What is learnt is kept as notes, in a storage.Store say, so that it survives the
// process. Lint tells the owner of a file what is wrong with it, Diff what a new
// version changes.
//
// The package decides and does nothing else. It never fetches, never waits,
// never reads the clock, starts no goroutine, and no input makes it fail: what
// it cannot read it ignores, as the standard asks.
package robots
