// Daemon is the decorum command with callbacks for two projects, which run in one daemon. Each
// project has its file in the folder projects and its callbacks in this package.
//
//	go run ./examples/daemon serve --projects examples/daemon/projects --start-new
//
// The daemon applies changes of a project file while it runs. Stop or kill it and start it again:
// both projects continue.
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

// registerBookCallbacks registers callbacks that print the price of each book and follow the links
// to other shelves.
func registerBookCallbacks(c *collyfetch.Collector) {
	c.OnHTML("article.book", func(e *colly.HTMLElement) {
		fmt.Printf("book: %s: %s\n", e.ChildText("h2"), strings.TrimSpace(e.ChildText(".price")))
	})
	c.OnHTML("a.shelf", queueLink)
}

// registerNewsCallbacks registers callbacks that print headlines and follow the link to the next
// story.
func registerNewsCallbacks(c *collyfetch.Collector) {
	c.OnHTML("h1", func(e *colly.HTMLElement) { fmt.Printf("news: %s\n", e.Text) })
	c.OnHTML("a.next", queueLink)
}

// queueLink queues a link. Visit returns before the page is visited: the crawl visits the page when
// its host is due, if robots.txt allows it.
func queueLink(e *colly.HTMLElement) {
	if err := e.Request.Visit(e.Attr("href")); err != nil {
		fmt.Println("cannot visit:", err)
	}
}
