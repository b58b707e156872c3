// Wrapcolly is a program for colly after one change that makes it polite: the line that creates the
// collector now also wraps it. It prints the titles of a site's pages and the errors of its links.
//
//	go run ./examples/wrapcolly https://example.com/
package main

import (
	"fmt"
	"log"
	"net/url"
	"os"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: wrapcolly URL")
	}
	site, err := url.Parse(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	// Before: c := colly.NewCollector(colly.AllowedDomains(site.Hostname()), colly.MaxDepth(5))
	c, err := collyfetch.Wrap(colly.NewCollector(colly.AllowedDomains(site.Hostname()), colly.MaxDepth(5)), options)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	c.OnRequest(func(r *colly.Request) { fmt.Println("visiting", r.URL) })
	c.OnHTML("title", func(e *colly.HTMLElement) { fmt.Println("  title:", e.Text) })
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
	c.OnError(func(r *colly.Response, err error) { fmt.Println("  error:", err) })
	if err := c.Visit(site.String()); err != nil {
		log.Print(err)
	}
}

// options identify the crawler to site owners. Tests change them.
var options = collyfetch.WrapOptions{Agent: "titlebot/1.0", Contact: "https://example.org/bot"} // yours
