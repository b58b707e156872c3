// Shop scrapes the products of a shop, page by page of its catalogue, and writes each as a line of
// JSON. Run it again after Ctrl-C or a crash, and it resumes where it stopped.
//
//	go run ./examples/shop https://shop.example/catalogue >>products.jsonl
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
)

// A product is the data that the program collects from a product's page.
type product struct {
	URL   string `json:"url"`
	Name  string `json:"name"`
	Price string `json:"price"`
	Shelf string `json:"shelf"` // data-shelf of the catalogue page that links to the product
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: shop URL")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := scrape(ctx, os.Args[1], collyfetch.WrapOptions{
		Agent: "shopbot/1.0", Contact: "https://example.org/bot", // yours
		StateDir: "shop-crawl",
	}, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// scrape writes the products of the catalogue that begins at url.
func scrape(ctx context.Context, url string, o collyfetch.WrapOptions, out io.Writer) (err error) {
	c, err := collyfetch.Wrap(colly.NewCollector(colly.StdlibContext(ctx), colly.Async()), o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()

	c.OnHTML("a.next, a.product", func(e *colly.HTMLElement) {
		e.Request.Ctx.Put("shelf", e.DOM.ParentsFiltered("main").AttrOr("data-shelf", ""))
		if err := e.Request.Visit(e.Attr("href")); err != nil {
			fmt.Fprintln(os.Stderr, "cannot visit:", err)
		}
	})
	var mu sync.Mutex // guards lines: an asynchronous collector calls callbacks in many goroutines
	lines := json.NewEncoder(out)
	c.OnHTML("article.product", func(e *colly.HTMLElement) {
		mu.Lock()
		defer mu.Unlock()
		err := lines.Encode(product{URL: e.Request.URL.String(), Name: e.ChildText("h1"),
			Price: strings.TrimSpace(e.ChildText(".price")), Shelf: e.Request.Ctx.Get("shelf")})
		if err != nil {
			panic(err) // the crawl logs it with the page's URL, and counts it
		}
	})
	if err := c.Visit(url); err != nil {
		return err
	}
	return c.Run(ctx)
}
