package extract_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/extract"
)

// contentType has the encoding, as most servers send it, so that the scanner need not detect it.
const contentType = "text/html; charset=utf-8"

// A finder is a way to find the links of pages. find returns their number.
type finder struct {
	name string
	find func(body []byte, page decorum.URL) (links int)
}

// finders returns the four finders. The first is decorum's.
func finders() []finder {
	var s extract.Scanner
	return []finder{
		{"decorum", func(body []byte, page decorum.URL) int { return len(s.ScanPage(body, contentType, page).Links) }},
		{"goquery", findByGoquery},
		{"tokenizer", findByTokenizer},
		{"bytes", findByBytes},
	}
}

// A linkSet is the set of links found on a page.
type linkSet struct {
	base decorum.URL // resolves relative links
	urls map[decorum.URL]bool
}

// add resolves and adds a link. Like the scanner, it ignores a link that is only a fragment.
func (f linkSet) add(ref string) {
	if strings.HasPrefix(ref, "#") {
		return
	}
	if u, err := f.base.Resolve(ref); err == nil {
		f.urls[u] = true
	}
}

// isLink reports whether an attribute of an element is a link.
func isLink(element, attribute, rel string) bool {
	switch element {
	case "a", "area":
		return attribute == "href"
	case "iframe", "frame":
		return attribute == "src"
	case "link":
		return attribute == "href" && (rel == "next" || rel == "prev" || rel == "canonical" || rel == "alternate")
	}
	return false
}

// findByGoquery finds links with goquery's selectors.
func findByGoquery(body []byte, page decorum.URL) int {
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(body))
	if err != nil {
		return 0
	}
	// A base element changes the base of links.
	f := linkSet{page, map[decorum.URL]bool{}}
	if href, ok := doc.Find("base[href]").Attr("href"); ok {
		if u, err := page.Resolve(href); err == nil {
			f.base = u
		}
	}
	doc.Find("a[href], area[href], link[href], iframe[src], frame[src]").Each(func(_ int, s *goquery.Selection) {
		for _, a := range s.Nodes[0].Attr {
			if isLink(s.Nodes[0].Data, a.Key, s.AttrOr("rel", "")) {
				f.add(a.Val)
			}
		}
	})
	return len(f.urls)
}

// findByTokenizer finds links with the tokenizer of x/net/html, and reads the attributes only of
// elements that can be links.
func findByTokenizer(body []byte, page decorum.URL) int {
	f := linkSet{page, map[decorum.URL]bool{}}
	z := html.NewTokenizer(bytes.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return len(f.urls)
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			switch element := string(name); element {
			case "a", "area", "link", "iframe", "frame":
				var rel, ref string
				for more {
					var key, value []byte
					key, value, more = z.TagAttr()
					switch string(key) {
					case "rel":
						rel = string(value)
					case "href", "src":
						ref = string(value)
					}
				}
				if isLink(element, "href", rel) || isLink(element, "src", rel) {
					f.add(ref)
				}
			}
		}
	}
}

// findByBytes searches for quoted values of href anywhere in the body.
func findByBytes(body []byte, page decorum.URL) int {
	f := linkSet{page, map[decorum.URL]bool{}}
	for {
		i := bytes.Index(body, []byte(`href="`))
		if i < 0 {
			return len(f.urls)
		}
		body = body[i+len(`href="`):]
		end := bytes.IndexByte(body, '"')
		if end < 0 {
			return len(f.urls)
		}
		f.add(string(body[:end]))
		body = body[end:]
	}
}

// samplePage is a page of 20 KiB with 50 links.
func samplePage() []byte {
	var b strings.Builder
	b.WriteString("<!doctype html><title>Page</title>\n")
	filler := "<p class=text>" + strings.Repeat("lorem ipsum dolor sit amet ", 13) + "</p>\n"
	for i := range 50 {
		fmt.Fprintf(&b, "<a href=\"/page/%d\">page</a>", i)
		b.WriteString(filler)
	}
	return []byte(b.String())
}

// TestFindersAgree: all finders find the same number of links on the sample, so they do the same
// work.
func TestFindersAgree(t *testing.T) {
	for _, f := range finders() {
		if n := f.find(samplePage(), pageURL(t)); n != 50 {
			t.Errorf("%s finds %d links on the sample, want 50", f.name, n)
		}
	}
}

// pageURL returns the URL of all pages.
func pageURL(t testing.TB) decorum.URL {
	u, err := decorum.ParseURL("https://docs.example/3/library/page.html")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// BenchmarkSample measures the finders on samplePage.
func BenchmarkSample(b *testing.B) { benchmarkFinders(b, [][]byte{samplePage()}) }

// BenchmarkPythonDocs measures the finders on the pages of the Python documentation.
func BenchmarkPythonDocs(b *testing.B) {
	dir, err := filepath.EvalSymlinks("/usr/share/doc/python3-doc/html")
	if err != nil {
		b.Skip("SKIP: no Python documentation: apt-get install python3-doc")
	}
	var pages [][]byte
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".html" {
			return err
		}
		body, err := os.ReadFile(path)
		pages = append(pages, body)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	benchmarkFinders(b, pages)
}

// benchmarkFinders lets all finders read the pages in turn. It reports the time per page of each
// finder, and how many times longer than decorum's the others take. It holds a heap of 64 MiB, as
// small crawls have: with a tiny heap it would mostly measure garbage collections.
func benchmarkFinders(b *testing.B, pages [][]byte) {
	heap, page := make([]byte, 64<<20), pageURL(b)
	defer runtime.KeepAlive(heap)
	all := finders()
	times := make([]time.Duration, len(all))
	links, bytes := 0, 0
	for i := 0; b.Loop(); i++ {
		body := pages[i%len(pages)]
		bytes += len(body)
		for k, f := range all {
			start := time.Now()
			links += f.find(body, page)
			times[k] += time.Since(start)
		}
	}
	if links == 0 {
		b.Fatal("no links")
	}
	for k, f := range all {
		b.ReportMetric(float64(times[k].Microseconds())/float64(b.N), f.name+"-µs")
		if k > 0 {
			b.ReportMetric(float64(times[k])/float64(times[0]), "times-"+f.name)
		}
	}
	b.ReportMetric(float64(bytes)/1e6/times[0].Seconds(), "MB/s")
	b.ReportMetric(0, "ns/op") // the sum of the four has no meaning: hide it
}
