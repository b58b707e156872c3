// Daemon is decorum serve with callbacks of its own: two projects in one process,
// each with its file in the folder projects, and its callbacks here.
//
//	go run ./examples/daemon serve --projects examples/daemon/projects --start-new
//
// Change a file while it runs, and its project follows. Stop it, or kill it, and
// start it again: both projects go on.
package main

import (
	"fmt"
	"strings"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/daemon"
)

func main() {
	daemon.Main(collyfetch.NamedCallbacks{"books": registerBookCallbacks, "news": registerNewsCallbacks})
}

// registerBookCallbacks prints the price of each book, and goes from shelf to shelf.
func registerBookCallbacks(c *collyfetch.Collector) {
	c.OnHTML("article.book", func(e *colly.HTMLElement) {
		fmt.Printf("book: %s: %s\n", e.ChildText("h2"), strings.TrimSpace(e.ChildText(".price")))
	})
	c.OnHTML("a.shelf", queueLink)
}

// registerNewsCallbacks prints headlines, and goes from one story to the next.
func registerNewsCallbacks(c *collyfetch.Collector) {
	c.OnHTML("h1", func(e *colly.HTMLElement) { fmt.Printf("news: %s\n", e.Text) })
	c.OnHTML("a.next", queueLink)
}

// queueLink queues a link. A page is not visited here: that is for the crawl to do when
// its host is due, and robots.txt allows it.
func queueLink(e *colly.HTMLElement) {
	if err := e.Request.Visit(e.Attr("href")); err != nil {
		fmt.Println("cannot visit:", err)
	}
}
