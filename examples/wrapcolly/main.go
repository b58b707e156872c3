// Wrap is a program for colly that was made polite: the line that made the
// collector now wraps it, and nothing else has changed. It prints the titles of a
// site's pages and what is wrong with its links.
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
		log.Fatal("usage: wrap URL")
	}
	site, err := url.Parse(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	// It was: c := colly.NewCollector(colly.AllowedDomains(site.Hostname()), colly.MaxDepth(5))
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

var options = collyfetch.WrapOptions{Agent: "titlebot/1.0", Contact: "https://example.org/bot"} // yours
