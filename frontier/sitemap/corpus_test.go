package sitemap

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A sample is a line of testdata/manifest.jsonl: a file and its expected content.
type sample struct {
	ID      string
	File    string
	Type    string
	BaseURL string `json:"base_url"`
	Mode    string // how to read it, where opinions differ

	WantURLs       []string   `json:"want_urls"`
	WantCount      int        `json:"want_count"`
	WantLastMod    []*string  `json:"want_lastmod"`
	WantChangeFreq []*string  `json:"want_changefreq"`
	WantPriority   []*float64 `json:"want_priority"`
	WantError      bool       `json:"want_error"`

	OrError        bool     `json:"or_error"`     // an error is accepted too
	OrURLs         []string `json:"or_urls"`      // with that error, these URLs are accepted too
	AlsoOKURLs     []string `json:"also_ok_urls"` // accepted in place of WantURLs
	MustNotContain []string `json:"must_not_contain"`
}

// An acceptedResult is decorum's result for a sample that may be read in several ways.
type acceptedResult struct {
	urls    []string
	wantErr bool
	reason  string
}

// acceptedResults holds the samples for which decorum's result differs from the manifest's first
// choice.
var acceptedResults = map[string]acceptedResult{
	"sitemaps/24": {[]string{"http://cs.harding.edu/fmccown/sitemaps/something.html"}, true,
		"what was read before the fault stands, beside the error"},
	"sitemaps/38": {[]string{"http://www.example.com/"}, true,
		"the text of the location ended before the file did, so it is whole"},
	"sitemaps/39": {[]string{"http://www.example.com/sitemap1.xml.gz"}, true,
		"the location was read whole before the file broke off"},
	"sitemaps/50": {[]string{"http://www.example.com/page1.html", "http://www.example.com/dir/page2.html",
		"http://www.example.com/page3.html", "http://www.example.com/page4.html"}, false,
		"relative locations are resolved: their meaning is plain, and what they lead to is judged like any URL"},
	"sitemaps/58": {[]string{"http://www.example.com/1"}, false,
		"UTF-16 says what it is by its first bytes, and costs nothing to read"},
}

func samples(t testing.TB) []sample {
	t.Helper()
	f, err := os.Open("testdata/manifest.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []sample
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var s sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("line %d: %v", len(all)+1, err)
		}
		all = append(all, s)
	}
	if len(all) != 59 {
		t.Fatalf("%d samples, want 59: a line is too long or missing", len(all))
	}
	return all
}

func TestSamples(t *testing.T) {
	for _, s := range samples(t) {
		t.Run(strings.ReplaceAll(s.ID, "/", "-")+" "+s.File, s.test)
	}
}

func (s sample) test(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("testdata", s.File))
	if err != nil {
		t.Fatal(err)
	}
	got, err := readEntries(t, string(file), s.BaseURL, Options{StrictLocation: s.Mode == "strict-location"})
	want := acceptedResult{urls: s.WantURLs, wantErr: s.WantError}
	if r, ok := acceptedResults[s.ID]; ok {
		want = r
	}
	var urls []string
	for _, e := range got {
		urls = append(urls, e.URL.String())
		if e.IsSitemap != (s.Type == "index") {
			t.Errorf("%v: index %v", e.URL, e.IsSitemap)
		}
	}
	// The manifest spells some URLs as the file does, and sorts the URLs of some samples.
	for i, u := range want.urls {
		want.urls[i] = mustParseURL(t, u).String()
	}
	if s.WantCount == len(want.urls) {
		slices.Sort(urls)
		slices.Sort(want.urls)
	}
	if !slices.Equal(urls, want.urls) || (err != nil) != want.wantErr {
		t.Errorf("got  %q, %v\nwant %q, an error: %v", urls, err, want.urls, want.wantErr)
	}
	for _, u := range urls {
		for _, not := range s.MustNotContain {
			if strings.Contains(u, not) {
				t.Errorf("%s must not be read", u)
			}
		}
	}
	s.testFields(t, got)
}

// testFields compares the fields of entries, as far as the manifest contains them.
func (s sample) testFields(t *testing.T, got []Entry) {
	for i, e := range got {
		var want Entry
		if want = e; i < len(s.WantLastMod) {
			want.LastMod = time.Time{}
			if d := s.WantLastMod[i]; d != nil {
				want.LastMod, _ = time.Parse(time.RFC3339, *d)
			}
		}
		if i < len(s.WantChangeFreq) {
			want.ChangeFreq = ""
			if f := s.WantChangeFreq[i]; f != nil {
				want.ChangeFreq = *f
			}
		}
		if i < len(s.WantPriority) {
			want.Priority = DefaultPriority
			if p := s.WantPriority[i]; p != nil {
				want.Priority = *p
			}
		}
		if e != want {
			t.Errorf("got  %v\nwant %v", e, want)
		}
	}
}
