package daemon_test

import (
	"fmt"
	"os"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon"
)

// A program with its own callbacks is the decorum command with these callbacks added. Most programs call
// Main, which ends the process; Run returns the exit code.
func ExampleRun() {
	web := crawltest.New(crawltest.Site{Host: "books.example", Pages: map[string]crawltest.PageFunc{
		"/":  crawltest.StaticPage(crawltest.HTML(`<h1>Books</h1><a class=next href=/2>more</a>`)),
		"/2": crawltest.StaticPage(crawltest.HTML(`<h1>More books</h1>`)),
	}})
	server, err := web.Start("127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	dir, err := os.MkdirTemp("", "books-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	books := func(c *collyfetch.Collector) {
		c.OnHTML("h1", func(e *colly.HTMLElement) { fmt.Println(e.Request.URL, e.Text) })
		c.OnHTML("a.next", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	}
	project := dir + "/books.yaml"
	text := "handler: books\nagent: {contact: mailto:you@example.com}\nseeds: [http://books.example/]\n"
	if err := os.WriteFile(project, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	code := daemon.Run(collyfetch.NamedCallbacks{"books": books}, "crawl", "-c", project, "--data",
		dir+"/data", "--delay=10ms",
		"--allow-private", "--connect-to=::"+server.Addr, "--progress=none", "--log-level=error")
	fmt.Println("exit code", code)
	// Output:
	// http://books.example/ Books
	// http://books.example/2 More books
	// exit code 0
}
