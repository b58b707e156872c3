package decorum_test

import (
	"net/url"
	"strings"
	"testing"

	whatwg "github.com/nlnwa/whatwg-url/url"

	"github.com/decorum-crawler/decorum"
)

// benchBase is the page that contains the links of benchLinks.
const benchBase = "https://www.example.com/shop/garden/tools.html?page=2"

// benchLinks are the forms of links, from usual to rare.
var benchLinks = []struct{ name, ref string }{
	{"absolute", "https://www.example.com/shop/garden/rake-17.html?colour=green"},
	{"other-host", "https://static.example.org/catalogue/2026/spring/index.html"},
	{"root-relative", "/shop/kitchen/knives.html?sort=price"},
	{"relative", "../kitchen/knives.html"},
	{"fragment", "#reviews"},
	{"query", "?page=3"},
	{"escapes", "/wiki/%D0%9E%D0%B2%D0%BE%D1%89%D0%B8"},
	{"unescaped", "/wiki/Овощи"},
	{"not-canonical", "HTTPS://user@Example.COM:443/a/./b/../c%7e/%c3%a9 d?q='x'#top"},
	{"idn", "https://www.bücher-müller.example/katalog/"},
	{"punycode", "https://www.xn--bcher-mller-uhb4g.example/katalog/"},
	{"refused", "mailto:someone@example.com"},
}

func BenchmarkParseURL(b *testing.B) {
	for _, l := range benchLinks {
		if !strings.Contains(l.ref, "://") {
			continue
		}
		runBenchmark(b, l.name+"/decorum", func() { decorum.ParseURL(l.ref) })
		runBenchmark(b, l.name+"/whatwg-url", func() {
			if u, err := whatwg.Parse(l.ref); err == nil {
				_ = u.Href(true)
			}
		})
		runBenchmark(b, l.name+"/net-url", func() {
			if u, err := url.Parse(l.ref); err == nil {
				_ = u.String()
			}
		})
	}
}

// BenchmarkResolve parses the base of the other parsers before the measurement, because a crawl
// parses it once per page.
func BenchmarkResolve(b *testing.B) {
	base := mustParse(b, benchBase)
	whatwgBase, _ := whatwg.Parse(benchBase)
	netBase, _ := url.Parse(benchBase)
	for _, l := range benchLinks {
		ref := []byte(l.ref)
		runBenchmark(b, l.name+"/decorum", func() { base.Resolve(l.ref) })
		runBenchmark(b, l.name+"/decorum-bytes", func() { base.ResolveBytes(ref) })
		runBenchmark(b, l.name+"/whatwg-url", func() {
			if u, err := whatwgBase.Parse(l.ref); err == nil {
				_ = u.Href(true)
			}
		})
		runBenchmark(b, l.name+"/net-url", func() {
			if u, err := netBase.Parse(l.ref); err == nil {
				_ = u.String()
			}
		})
	}
}

func runBenchmark(b *testing.B, name string, parse func()) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			parse()
		}
	})
}
