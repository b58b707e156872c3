// Priority crawls news before other pages, and archives last. A program chooses the order of the
// URLs of each origin. The frontier chooses which host is next, by when each host is due.
//
//	go run ./examples/priority https://example.com/
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: priority URL")
		os.Exit(2)
	}
	o := collyfetch.WrapOptions{Agent: "newsbot/1.0", Contact: "https://example.org/bot"} // yours
	if err := crawlAndPrint(context.Background(), os.Args[1], o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// orderNewsFirst sets the place of an entry among the URLs of its origin. The frontier sorts these
// by class, then by rank, then by the time of discovery.
func orderNewsFirst(e *storage.Entry) {
	frontier.AssignDefaultOrder(e)
	switch path := e.URL.PathAndQuery(); {
	case strings.HasPrefix(path, "/news/"):
		e.PriorityClass, e.PriorityRank = storage.ClassEarly, 1 // after the seeds
	case strings.HasPrefix(path, "/archive/"):
		e.PriorityClass = storage.ClassLate
	}
}

// crawlAndPrint prints the URLs of a site in the order of their visits.
func crawlAndPrint(ctx context.Context, url string, o collyfetch.WrapOptions, out io.Writer) (err error) {
	o.FrontierConfig.AssignOrder = orderNewsFirst
	c, err := collyfetch.Wrap(colly.NewCollector(colly.StdlibContext(ctx)), o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	c.OnRequest(func(r *colly.Request) { fmt.Fprintln(out, r.URL) })
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
	return c.Visit(url)
}
