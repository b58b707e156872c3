package extract_test

import (
	"fmt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/extract"
)

func ExampleScanner_ScanPage() {
	page := []byte(`<title>Fish &amp; chips</title><meta name=robots content=noarchive>
<a href="/menu?for=2&amp;day=friday">Menu</a> <a rel=nofollow href=//ads.example/>Ad</a>`)
	home, _ := decorum.ParseURL("https://example.com/")
	doc := new(extract.Scanner).ScanPage(page, "text/html; charset=utf-8", home)
	fmt.Println(doc.Title)
	fmt.Println(doc.RobotsDirectivesFor("examplebot", nil))
	for _, link := range doc.Links {
		fmt.Println(link.Kind, link.URL, link.NoFollow())
	}
	// Output:
	// Fish & chips
	// noarchive
	// a https://example.com/menu?for=2&day=friday false
	// a https://ads.example/ true
}

// A Scanner reads one page after the other with its settings.
func ExampleScanner() {
	home, _ := decorum.ParseURL("https://example.com/")
	scanner := extract.Scanner{IncludeImages: true, MaxLinks: 2}
	for _, page := range []string{
		`<img src=small.png srcset="small.png 1x, large.png 2x"><a href=/next>next</a>`,
		`<a href=/about>about</a>`,
	} {
		doc := scanner.ScanPage([]byte(page), "text/html", home)
		for _, link := range doc.Links {
			fmt.Println(link.Kind, link.URL)
		}
		fmt.Println("more:", doc.LinksTruncated)
	}
	// Output:
	// img https://example.com/small.png
	// img https://example.com/large.png
	// more: true
	// a https://example.com/about
	// more: false
}
