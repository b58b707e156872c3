// Package robotstest has what the tests of the packages below robots share: URLs, files of
// examples, and a reference that decides as the requirements are worded. It imports nothing
// of what they test.
package robotstest

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
)

// URL parses a URL, and fails the test if it is none.
func URL(tb testing.TB, s string) decorum.URL {
	tb.Helper()
	u, err := decorum.ParseURL(s)
	if err != nil {
		tb.Fatal(err)
	}
	return u
}

// An Example is one line of testdata/robots-examples.jsonl. Fields that are
// nil are not checked.
type Example struct {
	Req        string
	Dialect    string
	Extensions *bool
	Robots     string
	Base64     []byte `json:"robots_base64"`
	Agent      string
	URL        string

	Allowed    *bool
	Rule       *string
	CrawlDelay json.RawMessage `json:"crawl_delay_seconds"` // a number or null
	Sitemaps   *[]string
	Host       json.RawMessage // a string or null
	CleanURL   *string         `json:"clean_url"`
	Note       string
}

// DialectNames returns the names of the dialects in which an example of the named one is
// run. Those of "classic", the format of 1994, are for lint alone.
func DialectNames(name string) []string {
	switch name {
	case "classic":
		return nil
	case "both":
		return []string{"google", "yandex"}
	}
	return []string{name}
}

// Decode reads a line of an example file, and fails the test if there is a field
// that nobody would check.
func Decode(t testing.TB, text string, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// Lines returns the lines of a file, comments and empty lines left out.
func Lines(t testing.TB, name string) []string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []string
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if text := strings.TrimSpace(s.Text()); text != "" && text[0] != '#' {
			all = append(all, text)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
