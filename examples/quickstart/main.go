// Quickstart is the decorum command with callbacks that print the headings of every page and follow
// the links in its main text.
//
// Run it with a project file that has handler: titles, such as project.yaml.
//
//	go run ./examples/quickstart crawl -c examples/quickstart/project.yaml
package main

import (
	"fmt"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/daemon"
)

func main() {
	daemon.Main(collyfetch.NamedCallbacks{"titles": func(c *collyfetch.Collector) {
		c.OnHTML("h1", func(e *colly.HTMLElement) { fmt.Println(e.Request.URL, e.Text) })
		c.OnHTML("main a", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	}})
}
