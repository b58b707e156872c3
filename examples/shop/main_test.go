package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/politeness"
)

// TestShop scrapes a catalogue of two pages with two products each. Its robots.txt disallows one of
// the products. A second run writes nothing.
func TestShop(t *testing.T) {
	pages := map[string]crawltest.PageFunc{}
	for shelf := 1; shelf <= 2; shelf++ {
		catalogue := fmt.Sprintf("<main data-shelf=%d>", shelf)
		for n := 1; n <= 2; n++ {
			path := fmt.Sprintf("/p/%d%d", shelf, n)
			catalogue += fmt.Sprintf("<a class=product href=%s>x</a>", path)
			pages[path] = crawltest.StaticPage(crawltest.HTML(fmt.Sprintf("<article class=product><h1>Thing "+
				"%d%d</h1><b class=price> %d € </b></article>", shelf, n, n)))
		}
		pages[fmt.Sprintf("/catalogue/%d",
			shelf)] = crawltest.StaticPage(crawltest.HTML(fmt.Sprintf("%s<a class=next "+
			"href=/catalogue/%d>next</a></main>", catalogue, shelf+1)))
	}
	web := crawltest.New(crawltest.Site{Host: "shop.example", Pages: pages,
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
			Response:     crawltest.Text("User-agent: shopbot\nDisallow: /p/22\n"),
			IsDisallowed: func(p string) bool { return p == "/p/22" }})})
	server, err := web.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	o := collyfetch.WrapOptions{Agent: "shopbot/1.0", Contact: "https://example.org/bot",
		StateDir:    filepath.Join(t.TempDir(), "crawl"),
		Policy:      politeness.Policy{Delay: 10 * time.Millisecond},
		FetchConfig: httpfetch.Config{Transport: server.Transport()}}
	var out strings.Builder
	for range 2 {
		if err := scrape(t.Context(), "http://shop.example/catalogue/1", o, &out); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"url":"http://shop.example/p/11","name":"Thing 11","price":"1 €","shelf":"1"}
{"url":"http://shop.example/p/12","name":"Thing 12","price":"2 €","shelf":"1"}
{"url":"http://shop.example/p/21","name":"Thing 21","price":"1 €","shelf":"2"}
`
	if out.String() != want {
		t.Errorf("wrote\n%swant\n%s", &out, want)
	}
	// The judge also reports a page that the second run requested again.
	if r := web.Judge(crawltest.JudgeOptions{RequiredProductToken: "shopbot",
		MinDelay: 10 * time.Millisecond}); !r.OK() {
		t.Error(r)
	}
}
