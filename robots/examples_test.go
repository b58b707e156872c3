package robots

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// An example is one line of testdata/robots-examples.jsonl.
type example robotstest.Example

// exampleDialects returns the dialects in which an example with the given dialect runs.
func exampleDialects(t *testing.T, name string) (dialects []Dialect) {
	t.Helper()
	for _, n := range robotstest.DialectNames(name) {
		d, err := ParseDialect(n)
		if err != nil {
			t.Fatal(err)
		}
		dialects = append(dialects, d)
	}
	return dialects
}

// TestExamples runs the examples of rules, groups, delays, sitemaps, Host and Clean-param, each in all
// its dialects.
func TestExamples(t *testing.T) {
	for i, text := range robotstest.Lines(t, "testdata/robots-examples.jsonl") {
		var e example
		robotstest.Decode(t, text, &e)
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

// checkRules checks the results of the example that depend on its agent.
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

// checkFile checks the results of the example that are the same for all agents.
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

// formatSeconds returns a delay in the form of the examples.
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
