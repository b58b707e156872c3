package robots

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
)

// An example is one line of testdata/robots-examples.jsonl. Fields that are
// nil are not checked.
type example struct {
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
}

// TestExamples runs the examples of the google dialect that are about rules,
// Crawl-delay and sitemaps. A requirement that
// fails must be listed in testdata/known-gaps.txt, one that passes must not.
func TestExamples(t *testing.T) {
	gaps := readLines(t, "testdata/known-gaps.txt")
	failed := make(map[string]bool) // by requirement, of those that ran
	for i, text := range readLines(t, "testdata/robots-examples.jsonl") {
		var e example
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		if e.Dialect != "google" && e.Dialect != "both" || e.Allowed == nil && e.CrawlDelay == nil && e.Sitemaps == nil {
			continue
		}
		t.Run(fmt.Sprintf("%s/%d", e.Req, i+1), func(t *testing.T) {
			err := e.check()
			failed[e.Req] = failed[e.Req] || err != nil
			if err != nil && slices.Contains(gaps, e.Req) {
				t.Skip("known gap:", err)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	for _, req := range gaps {
		if fails, ran := failed[req]; !ran {
			t.Errorf("known gap %s: no example of that requirement ran", req)
		} else if !fails {
			t.Errorf("known gap %s: all its examples pass; take it off the list", req)
		}
	}
}

func (e *example) check() error {
	body := e.Base64
	if body == nil {
		body = []byte(e.Robots)
	}
	o := Options{NoExtensions: e.Extensions != nil && !*e.Extensions}
	file := o.Parse(body)
	rules := file.For(Named(e.Agent))
	if e.Allowed != nil {
		u, err := decorum.ParseURL(e.URL)
		if err != nil {
			return err
		}
		v := rules.Check(u)
		if v.Allowed != *e.Allowed {
			return fmt.Errorf("%s: allowed = %v by %q, want %v\n%s", e.URL, v.Allowed, v.Rule, *e.Allowed, body)
		}
		if e.Rule != nil && v.Rule != *e.Rule {
			return fmt.Errorf("%s: rule = %q, want %q\n%s", e.URL, v.Rule, *e.Rule, body)
		}
	}
	if e.CrawlDelay != nil {
		if got := seconds(rules.CrawlDelay()); got != string(e.CrawlDelay) {
			return fmt.Errorf("Crawl-delay = %s, want %s\n%s", got, e.CrawlDelay, body)
		}
	}
	if e.Sitemaps != nil {
		if got := urls(file.Sitemaps()); !slices.Equal(got, *e.Sitemaps) {
			return fmt.Errorf("sitemaps = %q, want %q\n%s", got, *e.Sitemaps, body)
		}
	}
	return nil
}

// seconds writes a delay as the examples do.
func seconds(d time.Duration, ok bool) string {
	if !ok {
		return "null"
	}
	return fmt.Sprint(d.Seconds())
}

func urls(us []decorum.URL) []string {
	s := make([]string, len(us))
	for i, u := range us {
		s[i] = u.String()
	}
	return s
}

// readLines returns the lines of a file, comments and empty lines left out.
func readLines(t *testing.T, name string) []string {
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
