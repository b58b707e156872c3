package robots

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
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
	Host       json.RawMessage // a string or null
	CleanURL   *string         `json:"clean_url"`
	Note       string
}

// original1994Dialect is the dialect of examples of how the format of 1994 reads. They are
// for lint, and not run here.
const original1994Dialect = "classic"

// exampleDialects returns those in which an example of the named one is run.
func exampleDialects(t *testing.T, name string) []Dialect {
	t.Helper()
	switch name {
	case original1994Dialect:
		return nil
	case "both":
		return []Dialect{Google, Yandex}
	}
	d, err := ParseDialect(name)
	if err != nil {
		t.Fatal(err)
	}
	return []Dialect{d}
}

// decodeExample reads a line of an example file, and fails if there is a field
// that nobody would check.
func decodeExample(t *testing.T, text string, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// TestExamples runs the examples of rules, groups, delays, sitemaps, Host and
// Clean-param, each in every dialect that it is for.
func TestExamples(t *testing.T) {
	for i, text := range readLines(t, "testdata/robots-examples.jsonl") {
		var e example
		decodeExample(t, text, &e)
		for _, d := range exampleDialects(t, e.Dialect) {
			t.Run(fmt.Sprintf("%s/%d/%s", e.Req, i+1, d), func(t *testing.T) {
				if err := e.check(d); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func (e *example) check(d Dialect) error {
	body := e.Base64
	if body == nil {
		body = []byte(e.Robots)
	}
	file := ParseOptions{Dialect: d, NoExtensions: e.Extensions != nil && !*e.Extensions}.Parse(body)
	if err := e.checkFile(file); err != nil {
		return fmt.Errorf("%w\n%s", err, body)
	}
	if err := e.checkRules(file.RulesFor(AgentFromName(e.Agent))); err != nil {
		return fmt.Errorf("%w\n%s", err, body)
	}
	return nil
}

// checkRules checks what the file says to the agent.
func (e *example) checkRules(rules *Rules) error {
	if e.CrawlDelay != nil {
		if got := formatSeconds(rules.CrawlDelay()); got != string(e.CrawlDelay) {
			return fmt.Errorf("Crawl-delay = %s, want %s", got, e.CrawlDelay)
		}
	}
	if e.Allowed == nil {
		return nil
	}
	u, err := decorum.ParseURL(e.URL)
	if err != nil {
		return err
	}
	v := rules.Check(u)
	if v.Allowed != *e.Allowed {
		return fmt.Errorf("%s: allowed = %v by %q, want %v", e.URL, v.Allowed, v.Rule, *e.Allowed)
	}
	if e.Rule != nil && v.Rule != *e.Rule {
		return fmt.Errorf("%s: rule = %q, want %q", e.URL, v.Rule, *e.Rule)
	}
	return nil
}

// checkFile checks what the file says to everybody.
func (e *example) checkFile(file *File) error {
	if e.Sitemaps != nil {
		if got := urlStrings(file.Sitemaps()); !slices.Equal(got, *e.Sitemaps) {
			return fmt.Errorf("sitemaps = %q, want %q", got, *e.Sitemaps)
		}
	}
	if e.Host != nil {
		got := "null"
		if host, ok := file.MainMirror(); ok {
			got = strconv.Quote(host)
		}
		if got != string(e.Host) {
			return fmt.Errorf("Host = %s, want %s", got, e.Host)
		}
	}
	if e.CleanURL == nil {
		return nil
	}
	found, err := decorum.ParseURL(e.URL)
	if err != nil {
		return err
	}
	if got := file.URLCleaner().CleanURL(found); got.String() != *e.CleanURL {
		return fmt.Errorf("%v is cleaned to %v, want %s", found, got, *e.CleanURL)
	}
	return nil
}

// formatSeconds writes a delay as the examples do.
func formatSeconds(d time.Duration, ok bool) string {
	if !ok {
		return "null"
	}
	return fmt.Sprint(d.Seconds())
}

func urlStrings(us []decorum.URL) []string {
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
