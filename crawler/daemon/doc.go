// Package daemon is the command line of decorum and the project file.
//
// It reads what somebody wants (Project), refuses what makes no sense before
// anything is sent, puts the parts of the crawl together, runs the crawl, and
// tells how it goes. It decides nothing about a URL: robots, politeness and
// frontier do.
//
// A value comes from the project file or from a flag, and flags win. Both are
// read by the same code and checked in one place, so a mistake is reported the
// same way whichever of the two it is in.
//
// # A program of your own
//
// Main is the decorum command with your callbacks in it: every command and flag
// works.
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
// A project chooses by name, with handler: books. Callbacks run in many workers
// at a time, and guard what they share. Without a handler, pages are recorded
// and links followed.
package daemon
