// Quickstart is decorum with callbacks of its own: it prints the headline of
// every article, and goes from one to the next.
//
// Run it with a project file that says handler: headlines; see project.yaml.
//
//	go run ./examples/quickstart crawl -c examples/quickstart/project.yaml
package main

import (
	"fmt"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/daemon"
)

func main() { daemon.Main(daemon.Handlers{"headlines": headlines}) }

func headlines(c *collyfetch.Collector) {
	c.OnHTML("article h1", func(e *colly.HTMLElement) {
		fmt.Println(e.Request.URL, e.Text)
	})
	c.OnHTML("a.next", func(e *colly.HTMLElement) {
		if err := e.Request.Visit(e.Attr("href")); err != nil {
			fmt.Println("cannot visit:", err)
		}
	})
}
