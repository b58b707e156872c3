// Package daemon is the decorum command as a library. A program of yours calls it to run every command
// of decorum with page handlers of your own.
//
// Begin at Main. It reads the command line and the project file, and rejects an invalid value before any
// request is sent. Then it assembles the crawl, runs it, and reports the result. A value comes from the
// project file (package crawler/project) or from a flag, and flags win. Both are read and checked by the
// same code, so that a mistake is reported in the same way. The package decides nothing about a URL:
// packages robots, politeness and frontier do.
//
// # A program of your own
//
// Main is the decorum command with your callbacks in it: every command and flag works.
//
//	func main() {
//		daemon.Main(collyfetch.NamedCallbacks{"books": books})
//	}
//
//	func books(c *collyfetch.Collector) {
//		c.OnHTML("h1", func(e *colly.HTMLElement) { fmt.Println(e.Request.URL, e.Text) })
//		c.OnHTML("a.next", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
//	}
//
// A project names its handler, with handler: books. Callbacks run in many workers at a time, and must
// guard the data that they share. For a project without a handler, pages are recorded and links
// followed.
//
// # Where to look
//
// This package only forwards to internal packages: internal/cli holds the commands, internal/engine
// assembles a crawl, internal/supervisor runs the projects of decorum serve, internal/server serves its
// API. It has no goroutine and no lock itself.
package daemon
