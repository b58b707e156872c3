package robotstest

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
)

// URL parses a URL. It fails the test if the URL is invalid.
func URL(tb testing.TB, s string) decorum.URL {
	tb.Helper()
	u, err := decorum.ParseURL(s)
	if err != nil {
		tb.Fatal(err)
	}
	return u
}

// An Example is one line of testdata/robots-examples.jsonl: a robots.txt and the results that are
// expected for it. Results that are nil are not checked.
type Example struct {
	Req        string // the code of the requirement, as in "MATCH-12"
	Dialect    string // see DialectNames
	Extensions *bool  // nil: on
	Robots     string // the body, unless Base64 has it
	Base64     []byte `json:"robots_base64"` // a body that JSON cannot express as text
	Agent      string
	URL        string

	// The expected results.
	Allowed    *bool
	Rule       *string         // as in robots.Verdict.Rule
	CrawlDelay json.RawMessage `json:"crawl_delay_seconds"` // a number or null
	Sitemaps   *[]string
	Host       json.RawMessage // a string or null
	CleanURL   *string         `json:"clean_url"`
	Note       string
}

// DialectNames returns the names of the dialects in which the tests run an example whose Dialect is
// name. It returns nil for "classic", the format of 1994, whose examples only robots/lint runs.
func DialectNames(name string) []string {
	switch name {
	case "classic":
		return nil
	case "both":
		return []string{"google", "yandex"}
	}
	return []string{name}
}

// Decode decodes a line of an example file. It fails the test if the line has an unknown field, which
// no test would check.
func Decode(t testing.TB, text string, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// Lines returns the lines of the file name, without comments and empty lines.
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
