package frontier

import (
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

// TestDuplicatePatternCloser: a pattern is closed by limit duplicates, unless more than a tenth as many
// of its pages since the first duplicate are new; a narrower pattern closes then.
func TestDuplicatePatternCloser(t *testing.T) {
	parse := func(path string) decorum.URL {
		u, err := decorum.ParseURL("http://a.test" + path)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	for _, tt := range []struct {
		name   string
		others int // new pages in /a/x/ for each 10 duplicates in /a/y/
		want   []string
	}{
		{"all are duplicates", 0, []string{"/a/*", "/a/y/*", "/a/y/#"}},
		{"a tenth is new", 1, []string{"/a/*", "/a/y/*", "/a/y/#"}},
		{"more is new", 3, []string{"/a/y/*", "/a/y/#"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := duplicatePatternCloser{limit: 20}
			var closed []string
			for n := range 40 {
				if n%10 == 0 {
					for i := range tt.others {
						d.recordPage(parse("/a/x/new"+strings.Repeat("z", n+i)), false)
					}
				}
				for _, p := range d.recordPage(parse("/a/y/"+string(rune('0'+n%10))+string(rune('0'+n/10))), true) {
					closed = append(closed, p.Pattern)
				}
			}
			if !slices.Equal(closed, tt.want) {
				t.Errorf("closed %q, want %q", closed, tt.want)
			}
			link := storage.Entry{URL: parse("/a/x/more"), Source: storage.SourceLink}
			if refused := d.check(link) != nil; refused != slices.Contains(tt.want, "/a/*") {
				t.Errorf("a link to /a/x/more is refused: %v", refused)
			}
			link.Source = storage.SourceSitemap
			if err := d.check(link); err != nil {
				t.Errorf("a URL of a sitemap: %v", err)
			}
		})
	}
}
