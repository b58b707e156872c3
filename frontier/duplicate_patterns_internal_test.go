package frontier

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

func TestDuplicatePatterns(t *testing.T) {
	long := "/" + strings.Repeat("x", maxClosedPatternLength)
	for _, tt := range []struct {
		url  string
		want []string
	}{
		{"/", nil},
		{"/page", nil},
		{"/day/7", []string{"/day/*", "/day/#"}},
		{"/a/b/c", []string{"/a/*", "/a/b/*"}},
		{"/2026/11/x", []string{"/#/*", "/#/#/*", "/#/#/x"}},
		{"/list?sort=a&dir=b&all", []string{"/list?sort=*&dir=*&all"}},
		{"/d/list?page=2", []string{"/d/*", "/d/list?page=*", "/d/list?page=#"}},
		{"/?", []string{"/?"}},
		{"/1/2/3/4/5/6/7/8/9/10", append([]string{"/#/*", "/#/#/*", "/#/#/#/*", "/#/#/#/#/*", "/#/#/#/#/#/*",
			"/#/#/#/#/#/#/*", "/#/#/#/#/#/#/#/*", "/#/#/#/#/#/#/#/#/*"}, "/#/#/#/#/#/#/#/#/#/#")},
		{long + "/y", nil},
	} {
		if got := duplicatePatterns(tt.url); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.url, got, tt.want)
		}
	}
}

// TestDuplicatePatternCloser: limit duplicates close the narrowest pattern that has them, unless more than
// a tenth as many of its pages are new. Pages before the first duplicate count, too.
func TestDuplicatePatternCloser(t *testing.T) {
	for _, tt := range []struct {
		name       string
		new        int    // pages in /a/x/ before the first duplicate
		duplicates string // pages that are duplicates: a format of a word and a number
		want       []string
	}{
		{"of one pattern", 0, "/a/y/%[2]d", []string{"/a/y/#"}},
		{"of one directory", 0, "/a/y/%[1]s/z", []string{"/a/y/*"}},
		{"of many directories", 0, "/a/y%[1]s/z", []string{"/a/*"}},
		{"after as many new pages as a tenth", 2, "/a/y%[1]s/z", []string{"/a/*"}},
		{"after more new pages", 30, "/a/y%[1]s/z", nil},
		{"of one directory, after more new pages of another", 30, "/a/y/%[1]s/z", []string{"/a/y/*"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := duplicatePatternCloser{limit: 20}
			var closed []string
			record := func(path string, isDuplicate bool) {
				for _, p := range d.recordPage(mustParseURL(t, "http://a.test"+path), isDuplicate) {
					closed = append(closed, p.Pattern)
				}
			}
			for n := range tt.new {
				record("/a/x/"+strings.Repeat("n", n+1), false)
			}
			for n := range 40 {
				record(fmt.Sprintf(tt.duplicates+"%.0[1]s%.0[2]d", strings.Repeat("z", n+1), n), true)
			}
			if !slices.Equal(closed, tt.want) {
				t.Fatalf("closed %q, want %q", closed, tt.want)
			}
			link := storage.Entry{URL: mustParseURL(t, "http://a.test/a/x/more"), Source: storage.SourceLink}
			if refused := d.check(link) != nil; refused != slices.Contains(tt.want, "/a/*") {
				t.Errorf("a link to /a/x/more is refused: %v", refused)
			}
			link.VisitHistorySummary = &storage.VisitHistorySummary{}
			if err := d.check(link); err != nil {
				t.Errorf("a revisit: %v", err)
			}
			link = storage.Entry{URL: link.URL, Source: storage.SourceSitemap}
			if err := d.check(link); err != nil {
				t.Errorf("a URL of a sitemap: %v", err)
			}
		})
	}
}

// TestClosedPatternsOfPorts: a pattern is closed for http and https on their default ports, and not for a
// site on another port of the host.
func TestClosedPatternsOfPorts(t *testing.T) {
	d := duplicatePatternCloser{limit: 5}
	for n := range 10 {
		d.recordPage(mustParseURL(t, fmt.Sprintf("http://a.test/copy/%d", n)), true)
		d.recordPage(mustParseURL(t, fmt.Sprintf("http://[::1]:81/copy/%d", n)), true)
	}
	for url, want := range map[string]bool{"http://a.test/copy/77": true, "https://a.test/copy/77": true,
		"http://a.test./copy/77": true, "http://a.test:8080/copy/77": false,
		"http://[::1]:81/copy/77": true, "http://[::1]/copy/77": false} {
		link := storage.Entry{URL: mustParseURL(t, url), Source: storage.SourceLink}
		if got := d.check(link) != nil; got != want {
			t.Errorf("%s is refused: %v, want %v", url, got, want)
		}
	}
	if list := d.closed.List("[::1]"); len(list) != 1 || list[0].Host != "[::1]:81" {
		t.Errorf("patterns of [::1]: %v, want one of port 81", list)
	}
}

// mustParseURL returns the URL that text is.
func mustParseURL(t *testing.T, text string) decorum.URL {
	t.Helper()
	u, err := decorum.ParseURL(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
