package collyfetch_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// libraryWeb is a web of three pages; robots.txt disallows one.
func libraryWeb() *crawltest.Web {
	return crawltest.New(crawltest.Site{
		Host: "library.example",
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: " +
			"/staff\n"),
			IsDisallowed: func(path string) bool { return strings.HasPrefix(path, "/staff") }}),
		Pages: map[string]crawltest.PageFunc{
			"/": crawltest.StaticPage(crawltest.HTML("<h1>Library</h1><a href=/hours>Hours</a><a " +
				"href=/staff/rota>Rota</a>")),
			"/hours":   crawltest.StaticPage(crawltest.HTML("<h1>Hours</h1><a href=/>Home</a>")),
			"/staff/a": crawltest.StaticPage(crawltest.HTML("<h1>Rota</h1>")),
		},
	})
}

// A colly program becomes a polite crawl by changing the line that makes the collector.
func ExampleWrap() {
	c, err := collyfetch.Wrap(colly.NewCollector(colly.AllowedDomains("library.example")), collyfetch.WrapOptions{
		Agent: "examplebot/1.0", Contact: "https://example.org/bot",
		Policy:      politeness.Policy{Delay: 10 * time.Millisecond}, // for the example; the default is 1 s
		FetchConfig: httpfetch.Config{Transport: libraryWeb()},       // for the example; the default is the network
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	c.OnRequest(func(r *colly.Request) { fmt.Println("visiting", r.URL) })
	c.OnHTML("h1", func(e *colly.HTMLElement) { fmt.Println("found", e.Text) })
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		if err := e.Request.Visit(e.Attr("href")); err != nil {
			fmt.Println(err)
		}
	})
	if err := c.Visit("http://library.example/"); err != nil {
		fmt.Println(err)
	}
	fmt.Println("closed by robots.txt:", c.Stats().BlockedURLs)
	// Output:
	// visiting http://library.example/
	// found Library
	// visiting http://library.example/hours
	// found Hours
	// closed by robots.txt: 1
}

// With a StateDir, a program that was stopped or killed resumes where it was when it is started again.
// This example uses the network, so it does not run as a test.
func ExampleWrapOptions() {
	c, err := collyfetch.Wrap(colly.NewCollector(colly.AllowedDomains("shop.example")), collyfetch.WrapOptions{
		Agent: "examplebot/1.0", Contact: "https://example.org/bot", StateDir: "shop-crawl"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	c.Visit("https://shop.example/")
}

// A crawl can say what its pages are used for, and keep a ledger that proves what permitted each
// request.
func ExampleWrapOptions_ledger() {
	closed := crawltest.HTML("<h1>Diary</h1>")
	closed.Header.Set("X-Robots-Tag", "noai")
	web := crawltest.New(crawltest.Site{Host: "library.example", Pages: map[string]crawltest.PageFunc{
		"/":      crawltest.StaticPage(crawltest.HTML("<h1>Library</h1><a href=/diary>Diary</a>")),
		"/diary": crawltest.StaticPage(closed),
	}})
	dir, err := os.MkdirTemp("", "crawl")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	c, err := collyfetch.Wrap(colly.NewCollector(), collyfetch.WrapOptions{
		Agent: "examplebot/1.0", Contact: "https://example.org/bot", StateDir: dir, KeepLedger: true,
		RobotsConfig: gate.Config{Purposes: []string{"ai-train"}},
		Policy:       politeness.Policy{Delay: 10 * time.Millisecond}, FetchConfig: httpfetch.Config{Transport: web},
	})
	if err != nil {
		log.Fatal(err)
	}
	c.OnHTML("h1", func(e *colly.HTMLElement) { fmt.Println("to train on:", e.Text) })
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
	if err := errors.Join(c.Visit("http://library.example/"), c.Close()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("not to be used for that:", c.Stats().PagesWithheld)

	report, err := ledger.Verify(filepath.Join(dir, "ledger"), ledger.VerifyOptions{}) // like "decorum ledger verify"
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("requests:", report.Requests, "all right:", report.OK())
	// Output:
	// to train on: Library
	// not to be used for that: 1
	// requests: 4 all right: true
}

// A Clone has separate callbacks, and joins the crawl under a name.
func ExampleCollector_JoinCollector() {
	list := colly.NewCollector()
	c, err := collyfetch.Wrap(list, collyfetch.WrapOptions{
		Agent: "examplebot/1.0", Contact: "mailto:bot@example.org",
		Policy: politeness.Policy{Delay: 10 * time.Millisecond}, FetchConfig: httpfetch.Config{Transport: libraryWeb()},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	detail := list.Clone()
	if err := c.JoinCollector("detail", detail); err != nil {
		fmt.Println(err)
		return
	}
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		ctx := colly.NewContext()
		ctx.Put("label", e.Text) // is queued with the URL
		if err := detail.Request("GET", e.Request.AbsoluteURL(e.Attr("href")), nil, ctx, nil); err != nil {
			fmt.Println(err)
		}
	})
	detail.OnHTML("h1", func(e *colly.HTMLElement) {
		fmt.Printf("%s, found as %q\n", e.Request.URL, e.Request.Ctx.Get("label"))
	})
	if err := c.Visit("http://library.example/"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// http://library.example/hours, found as "Hours"
}

// RunQueue takes the place of Queue.Run. Callbacks may add to the queue.
func ExampleCrawl_RunQueue() {
	c, err := collyfetch.Wrap(colly.NewCollector(), collyfetch.WrapOptions{
		Agent: "examplebot/1.0", Contact: "https://example.org/bot",
		Policy: politeness.Policy{Delay: 10 * time.Millisecond}, FetchConfig: httpfetch.Config{Transport: libraryWeb()},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	q, err := queue.New(2, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	c.OnHTML("h1", func(e *colly.HTMLElement) { fmt.Println("found", e.Text) })
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		if next, err := e.Request.New("GET", e.Request.AbsoluteURL(e.Attr("href")), nil); err == nil {
			q.AddRequest(next)
		}
	})
	q.AddURL("http://library.example/")
	if err := c.RunQueue(context.Background(), q); err != nil {
		fmt.Println(err)
	}
	// Output:
	// found Library
	// found Hours
}

// FollowLink does what Request.Visit does, without the cost of colly's URL parser.
func ExampleFollowLink() {
	c, err := collyfetch.Wrap(colly.NewCollector(colly.AllowedDomains("library.example")), collyfetch.WrapOptions{
		Agent: "examplebot/1.0", Contact: "https://example.org/bot",
		Policy: politeness.Policy{Delay: 10 * time.Millisecond}, FetchConfig: httpfetch.Config{Transport: libraryWeb()},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	c.OnHTML("h1", func(e *colly.HTMLElement) {
		fmt.Println("found", e.Text)
		fmt.Println(collyfetch.FollowLink(e.Request, "http://elsewhere.example/"))
	})
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { collyfetch.FollowLink(e.Request, e.Attr("href")) })
	if err := c.Visit("http://library.example/"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// found Library
	// Forbidden domain
	// found Hours
	// Forbidden domain
}
