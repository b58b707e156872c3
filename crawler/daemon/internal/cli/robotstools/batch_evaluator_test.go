package robotstools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/robots"
)

// evaluateToJSON returns the line of JSON that answers a line.
func evaluateToJSON(t *testing.T, c *batchEvaluator, line string) string {
	t.Helper()
	var out strings.Builder
	if err := evaluateBatch(strings.NewReader(line), &out, c); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func TestRobotsEvaluator(t *testing.T) {
	const (
		file  = `"robots":"User-agent: *\nDisallow: /a&b\nCrawl-delay: 1.5\n\nUser-agent: Googlebot\nDisalow /\n\nSitemap: https://h/s.xml\nSitemap: x"`
		delay = `"crawl_delay_seconds":1.5`
		maps  = `"sitemaps":["https://h/s.xml"]`
	)
	for _, tt := range []struct{ name, line, want string }{
		{"disallowed", `{` + file + `,"agent":"x","url":"https://H/a&b"}`,
			`{"allowed":false,"rule":"disallow: /a&b","line":2,` + delay + `,` + maps +
				`,"host":null,"clean_url":"https://h/a&b"}`},
		{"allowed by no rule", `{` + file + `,"agent":"x","url":"https://h"}`,
			`{"allowed":true,"rule":null,"line":null,` + delay + `,` + maps + `,"host":null,"clean_url":"https://h/"}`},
		{"the agent's own group", `{` + file + `,"agent":"Googlebot-News","url":"https://h/a&b"}`,
			`{"allowed":true,"rule":null,"line":null,"crawl_delay_seconds":null,` + maps +
				`,"host":null,"clean_url":"https://h/a&b"}`},
		{"SYN-08/google-oss", `{` + file + `,"agent":"Googlebot","url":"https://h/robots.txt","dialect":"google-oss"}`,
			`{"allowed":false,"rule":"disallow: /","line":6,"crawl_delay_seconds":null,` + maps +
				`,"host":null,"clean_url":"https://h/robots.txt"}`},
		{"google-oss/no URL", `{` + file + `,"agent":"Googlebot","url":"?","dialect":"google-oss"}`,
			`{"allowed":false,"rule":"disallow: /","line":6,"crawl_delay_seconds":null,` + maps +
				`,"host":null,"clean_url":null}`},
		{"google/no URL", `{` + file + `,"agent":"Googlebot","url":"?"}`,
			`{"allowed":null,"rule":null,"line":null,"crawl_delay_seconds":null,` + maps +
				`,"host":null,"clean_url":null,` +
				`"error":"\"?\" is not a URL that robots.txt applies to: expected https://host/path"}`},
		{"DELAY-07/without extensions", `{` + file + `,"agent":"x","extensions":false}`,
			`{"allowed":null,"rule":null,"line":null,"crawl_delay_seconds":null,` + maps +
				`,"host":null,"clean_url":null}`},
		{"only the file's values", `{` + file + `,"extensions":true,"url":null}`,
			`{"allowed":null,"rule":null,"line":null,` + delay + `,` + maps + `,"host":null,"clean_url":null}`},
		{"base64, other fields", `{"req":"X","robots_base64":"VXNlci1hZ2VudDogKgpEaXNhbGxvdzogL/8=","agent":"x","url":"http://h/%ff"}`,
			`{"allowed":false,"rule":"disallow: /\ufffd","line":2,"crawl_delay_seconds":null,"sitemaps":[],"host":null,"clean_url":"http://h/%FF"}`},
		{"empty file", `{"robots":"","url":"http://h/"}`,
			`{"allowed":true,"rule":null,"line":null,"crawl_delay_seconds":null,"sitemaps":[],"host":null,"clean_url":"http://h/"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newBatchEvaluator(robots.Google, "*")
			for range 2 { // first from the text, then from the cache
				if got := evaluateToJSON(t, c, tt.line); got != tt.want {
					t.Errorf("%s\n got %s\nwant %s", tt.line, got, tt.want)
				}
			}
		})
	}
}

func TestRobotsEvaluatorBadQueries(t *testing.T) {
	const nothing = `{"allowed":null,"rule":null,"line":null,"crawl_delay_seconds":null,"sitemaps":null,"host":null,"clean_url":null,"error":`
	c := newBatchEvaluator(robots.Google, "*")
	for line, want := range map[string]string{
		`hello`:                            "not a question: invalid character",
		`{"robots":"`:                      "not a question: unexpected end of JSON input",
		`{"robots":""} x`:                  "not a question: invalid character 'x'",
		`[]`:                               "not a question: json: cannot unmarshal array",
		`{"robots":1}`:                     "not a question: json: cannot unmarshal number",
		`{"robots_base64":"!"}`:            "not a question: illegal base64",
		`{"url":"http://h/"}`:              "neither robots nor robots_base64 is given",
		`null`:                             "neither robots nor robots_base64 is given",
		`{"robots":"","robots_base64":""}`: "both robots and robots_base64 are given",
		`{"robots":"","dialect":"bing"}`:   `dialect: \"bing\" is not one of google, yandex, google-oss`,
		"\n":                               "not a question: unexpected end of JSON input",
		strings.Repeat(" ", plaintext.MaxLineBytes+1) + "{}": "the line is longer than",
	} {
		if got := evaluateToJSON(t, c, line); !strings.HasPrefix(got, nothing) ||
			!strings.Contains(got, want) || !json.Valid([]byte(got)) {
			t.Errorf("%.40q\n got %s\nwant %q", line, got, want)
		}
	}
}

// The evaluator's default dialect and agent are for questions without one, and the cache keeps a file
// separately for each dialect.
func TestRobotsEvaluatorDefaults(t *testing.T) {
	c := newBatchEvaluator(robots.GoogleOSS, "foo2")
	for line, want := range map[string]bool{
		`{"robots":"user-agent:foo2\ndisallow:/","url":"http://h/"}`:                                  true,
		`{"robots":"user-agent:foo2\ndisallow:/","url":"http://h/","dialect":"google"}`:               false,
		`{"robots":"user-agent:foo2\ndisallow:/","url":"http://h/","agent":"foo"}`:                    false,
		`{"robots":"user-agent:foo2\ndisallow:/","url":"http://h/","agent":"foo","dialect":"google"}`: true,
	} {
		if got := c.evaluateLine([]byte(line)); got.Allowed == nil || *got.Allowed != want {
			t.Errorf("%s: %s, want %v", line, evaluateToJSON(t, c, line), want)
		}
	}
}

// The cache of the evaluator stays bounded, however many files and agents the questions have.
func TestRobotsEvaluatorIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("long, with one goroutine")
	}
	t.Parallel()
	c := newBatchEvaluator(robots.Google, "*")
	body := strings.Repeat("#", 1<<20)
	for i := range 3 * maxEvaluatorCacheBytes >> 22 {
		for _, agent := range []string{"a", "b"} {
			c.evaluateLine(fmt.Appendf(nil, `{"robots":"%d%s","agent":%q}`, i, body, agent))
		}
		if len(c.parsedFiles) > maxEvaluatorCacheBytes>>20 || c.cachedBytes > maxEvaluatorCacheBytes {
			t.Fatalf("%d files, %d bytes", len(c.parsedFiles), c.cachedBytes)
		}
	}
}

// FuzzRobotsEvaluator checks that every line, valid or not, gets one line of JSON.
func FuzzRobotsEvaluator(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[`, `{"robots":"user-agent: *\ndisallow: /\ud800\u0000","url":"http://h/<&>"}`,
		`{"robots_base64":"/w==","agent":"\ufeff","url":"","dialect":"google-oss","extensions":false}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		line = strings.ReplaceAll(line, "\n", " ") + "\n"
		got := evaluateToJSON(t, newBatchEvaluator(robots.Google, "*"), line)
		var a batchOutputLine
		if err := json.Unmarshal([]byte(got), &a); err != nil || strings.Contains(got, "\n") {
			t.Fatalf("%q: %s: %v", line, got, err)
		}
		if (a.Rule == nil) != (a.RuleLine == nil) || a.Error != "" && a.Allowed != nil {
			t.Errorf("%q: %s", line, got)
		}
	})
}
