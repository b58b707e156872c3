package sitemap_test

import (
	"fmt"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier/sitemap"
)

func ExampleRead() {
	file := strings.NewReader(`<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
  <url><loc>https://example.com/?a=1&amp;b=2</loc><lastmod>2024-05-06</lastmod></url>
  <url><loc>https://example.com/about</loc><priority>0.8</priority></url>
</urlset>`)
	base, _ := decorum.ParseURL("https://example.com/sitemap.xml")
	err := sitemap.Read(file, base, sitemap.Options{}, func(e sitemap.Entry) error {
		fmt.Println(e.URL, e.Priority)
		return nil
	})
	fmt.Println(err)
	// Output:
	// https://example.com/?a=1&b=2 0.5
	// https://example.com/about 0.8
	// <nil>
}

// A sitemap may list URLs in its directory and below. Options say what becomes of other URLs and of
// unusable fields.
func ExampleOptions() {
	file := strings.NewReader(`<urlset>
  <url><loc>https://example.com/shop/1</loc><lastmod>yesterday</lastmod></url>
  <url><loc>https://example.org/</loc></url>
</urlset>`)
	base, _ := decorum.ParseURL("https://example.com/shop/sitemap.xml")
	options := sitemap.Options{
		StrictLocation: true,
		OnEntryError:   func(f sitemap.EntryError) { fmt.Println(f) },
	}
	err := sitemap.Read(file, base, options, func(e sitemap.Entry) error {
		fmt.Println(e.URL, e.LastMod.IsZero())
		return nil
	})
	fmt.Println(err)
	// Output:
	// line 2: lastmod "yesterday": not a date
	// https://example.com/shop/1 true
	// line 3: location "https://example.org/": a sitemap at this location may not list it
	// <nil>
}
