package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// TestLint lists all findings about each file, as "line severity requirement".
func TestLint(t *testing.T) {
	const star = "User-agent: *\n"
	for _, test := range []struct {
		name, file string
		want       []string
	}{
		{"nothing to say", star + "Disallow: /a\nCrawl-delay: 1\nHost: h.example\n\nUser-agent: bot\nDisallow: " +
			"/b\n\nSitemap: https://h/s.xml\n", nil},
		{"nothing", "", nil},
		{"FMT-03/BOM", "\ufeff" + star + "Disallow: /a", nil},
		{"FMT-05/HTML", " <!DOCTYPE html>\n<html><p>not found\n" + star + "Disallow: /a", []string{"1 error FMT-05"}},
		{"FMT-07/not UTF-8", star + "Disallow: /a\nDisallow: /caf\xe9\nDisallow: /\xe9", []string{"3 warning FMT-07"}},
		{"FMT-13/NUL", star + "Disallow: /a\x00", []string{"2 error FMT-13"}},
		{"FMT-15/UTF-16", "\xff\xfeU\x00s\x00e\x00r\x00", []string{"0 error FMT-15"}},
		{"FMT-15/UTF-16 without BOM", "U\x00s\x00e\x00r\x00", []string{"0 error FMT-15"}},
		{"SYN-01/no colon", star + "Disallow /a\nhello",
			[]string{"2 error SYN-01", "3 warning SYN-01", "1 hint GRP-04"}},
		{"SYN-04/comment after the path", star + "Disallow: /a#b\nDisallow: /c # d", []string{"2 warning SYN-04"}},
		{"SYN-08/typos", star + "Dissalow: /a\nUseragent: x\nsite map: https://h/\nDisallow: /a",
			[]string{"2 error SYN-08", "3 error SYN-08", "4 error SYN-08"}},
		{"SYN-10/no slash", star + "Disallow: a\nDisallow: $", []string{"2 error SYN-10", "3 error SYN-10"}},
		{"SYN-10/absolute URL", star + "Disallow: https://h/a", []string{"2 error SYN-10"}},
		{"SYN-11/leading star", star + "Allow: *.gif", nil},
		{"SYN-15/unknown field", star + "Noindex: /a\nDisallow: /a", []string{"2 hint SYN-15"}},
		{"SYN-15/pace", star + "Disallow: /a\nRequest-rate: 1/5m 0800-1300\nVisit-time: 0600-0845\nRequest-rate: " +
			"5\nVisit-time: 6-8",
			[]string{"5 error SYN-15", "6 error SYN-15"}},
		{"SYN-01/space inside", star + "Disallow: /a /b", []string{"2 warning SYN-01"}},
		{"SYN-19/no agent", "User-agent:\nDisallow: /a", []string{"1 error SYN-19"}},
		{"AGENT-02/more than a name", "User-agent: Bot/1.0\nDisallow: /a\n\nUser-agent: (all)\nDisallow: /",
			[]string{"1 hint AGENT-02", "4 error AGENT-02"}},
		{"SMAP-02", "Sitemap: /s.xml\nSitemap: http:///s.xml", []string{"1 error SMAP-02", "2 error SMAP-02"}},
		{"DELAY-09/before any group", "Crawl-delay: 1", []string{"1 hint LINT-03", "1 error DELAY-09"}},
		{"DELAY-11", star + "Disallow: /a\nCrawl-delay: 0,5\nCrawl-delay: fast",
			[]string{"3 error DELAY-11", "4 error DELAY-11"}},
		{"GRP-04/empty group", star + "Disallow: /a\n\nUser-agent: bot", []string{"4 hint GRP-04"}},
		{"GRP-06/listed twice", "User-agent: Bot\nDisallow: /a\n\nUser-agent: bot\nDisallow: /b",
			[]string{"4 warning GRP-06"}},
		{"GRP-12/before any group", "Disallow: /a\nDisallow: /b\n" + star + "Disallow: /c",
			[]string{"1 error GRP-12", "3 hint LINT-02"}},
		{"LINT-05/signals", star + "Content-Usage: /a train-ai=n\nContent-Signal: search\nDisallow: /a",
			[]string{"3 warning LINT-05"}},
		{"HOST-10", star + "Disallow: /a\nHost: http://h", []string{"3 error HOST-10"}},
		{"CLEAN-10", "Clean-param: sid /a?b", []string{"1 error CLEAN-10"}},
		{"LINT-02/blank lines", "User-agent: bot\n\nDisallow: /a\n# why\n\nDisallow: /b\nUser-agent: x\nDisallow: /",
			[]string{"3 hint LINT-02", "7 hint LINT-02"}},
		{"LINT-02/blank line after a delay", star + "Crawl-delay: 1\n\nDisallow: /a",
			[]string{"2 hint LINT-03", "4 hint LINT-02"}},
		{"LINT-02/blank line before any group", "Sitemap: https://h/s.xml\n\nDisallow: /a",
			[]string{"3 error GRP-12"}},
		{"LINT-03/host on its own", star + "Disallow: /a\n\nHost: h.example", []string{"4 hint LINT-03"}},
		{"LINT-04/delay ends no group", star + "Crawl-delay: 10\nUser-agent: badbot\nDisallow: /",
			[]string{"2 warning LINT-04", "2 hint LINT-03", "3 hint LINT-02", "4 hint LINT-08"}},
		{"LINT-04/no path", star + "Disallow:\n\nUser-agent: x\nAllow:",
			[]string{"2 hint LINT-04", "5 warning LINT-04"}},
		{"LINT-08/all is closed", star + "Disallow: /", []string{"2 hint LINT-08"}},
		{"COMPAT-01", star + "Allow: /a/b\nDisallow: /a", []string{"2 hint COMPAT-01"}},
		{"COMPAT-02", star + "Disallow: /*.php\nDisallow: /*.cgi\nDisallow: /x*", []string{"2 hint COMPAT-02"}},
		{"COMPAT-03", star + "Disallow: /a$", []string{"2 hint COMPAT-03"}},
		{"COMPAT-04/another group", "User-agent: a\nDisallow: /x\nUser-agent: b\nDisallow: /y",
			[]string{"3 hint LINT-02", "4 hint COMPAT-04"}},
		{"COMPAT-04/a name in another name", "User-agent: OtherBot\nDisallow: /x\nUser-agent: Bot\nDisallow: /y",
			[]string{"3 hint LINT-02", "4 hint COMPAT-04"}},
		{"COMPAT-04/one group", star + "Disallow: /a\nAllow: /a$", []string{"3 hint COMPAT-01"}},
		{"PREC-01/never wins", star + "Disallow: /a/*//*\nDisallow: /a/*/*/*",
			[]string{"2 warning PREC-01", "3 hint COMPAT-02"}},
		{"PREC-01/for crawlers without wildcards", star + "Disallow: /test/\nDisallow: */test/",
			[]string{"3 hint COMPAT-02"}},
		{"PREC-01/for crawlers without leading stars", star + "Disallow: /*/a/b\nDisallow: *a*/*b",
			[]string{"2 hint COMPAT-02"}},
		{"PREC-02/never wins", star + "Disallow: /a\nAllow: /a", []string{"2 error PREC-02", "3 hint COMPAT-01"}},
		{"PREC-02/a longer one covers it", star + "Allow: *b\nDisallow: /*b",
			[]string{"2 error PREC-02", "3 hint COMPAT-02"}},
		{"PREC-09/twice", star + "Disallow: /a\nDisallow: /%61\nDisallow: /a*",
			[]string{"3 hint PREC-09", "4 hint PREC-09"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, f := range Check([]byte(test.file), robots.ParseOptions{}) {
				got = append(got, fmt.Sprint(f.Line, " ", f.Severity, " ", f.Code))
				if f.Message == "" || f.Effect == "" {
					t.Errorf("%+v has no message or no effect", f)
				}
			}
			slices.Sort(got)
			slices.Sort(test.want)
			if !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestLintSize(t *testing.T) {
	fill := func(size int) string {
		head := "\ufeffUser-agent: *\nDisallow: /a\n"
		return head + strings.Repeat("# 456789012345\n", (size-len(head))/15+1)[:size-len(head)]
	}
	for _, test := range []struct {
		name string
		size int
		want []string
	}{
		{"FMT-10/32 KB", 32 << 10, nil},
		{"FMT-10/more", 32<<10 + 1, []string{"0 hint LINT-06"}},
		{"FMT-08/near 500 KiB", 490 << 10, []string{"0 warning LINT-06", "0 hint LINT-06"}},
		{"FMT-08/beyond", 500<<10 + 1, []string{"0 hint LINT-06", "34134 error LINT-06"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, f := range Check([]byte(fill(test.size)), robots.ParseOptions{}) {
				got = append(got, fmt.Sprint(f.Line, " ", f.Severity, " ", f.Code))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestLintAdvises lists lines with the correction that lint suggests.
func TestLintAdvises(t *testing.T) {
	for _, test := range []struct{ line, advice string }{
		{"Disallow a", `probably "disallow: a"`},
		{"disallow= /a", `probably "disallow: /a"`},
		{"Dissalow: /a", `probably "disallow"`},
		{"User agent: x", `probably "user-agent"`},
		{"Site-map: x", `probably "sitemap"`},
		{"\ufeffDisallow: /a", `probably "disallow"`},
		{"Disallow: ./a", `probably "disallow: /a"`},
		{"Allow: http://h.example/a?b", `probably "allow: /a?b"`},
		{"Crawl-delay: 0,5", "probably 0.5"},
		{"Disallow: /x*", "remove it"},
		{"Allow:", `probably "Allow: /"`},
	} {
		found := Check([]byte("User-agent: *\nDisallow: /x\n"+test.line), robots.ParseOptions{})
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.Line == 3 && f.Advice == test.advice }) {
			t.Errorf("%q: no advice %q in %+v", test.line, test.advice, found)
		}
	}
}

// TestLintKeepsThePlainRule: of two equal rules, lint advises to remove the one that fewer
// crawlers can read.
func TestLintKeepsThePlainRule(t *testing.T) {
	found := Check([]byte("User-agent: *\nDisallow: /a*\nDisallow: /a\n"), robots.ParseOptions{})
	const want = "remove line 2: more crawlers can read this one"
	if !slices.ContainsFunc(found, func(f Finding) bool { return f.Line == 3 && f.Advice == want }) {
		t.Errorf("no advice %q in %+v", want, found)
	}
}

// TestLintOfUserAgents: what lint says about a name agrees with the google-oss dialect.
func TestLintOfUserAgents(t *testing.T) {
	for _, test := range []struct {
		value, effect string
		google        string // the agent that the group binds in google-oss; empty: none
	}{
		{"Bot/1.0", `Google reads it as "Bot"`, "bot"},
		{"NaverBot-1.0",
			`Google's parser reads it as "NaverBot-", crawlers that accept digits in a name as "NaverBot-1"`, "naverbot-"},
		{"b2w/0.1", `Google's parser reads it as "b", crawlers that accept digits in a name as "b2w"`, "b"},
		{"360Spider/1",
			`crawlers that accept digits in a name read it as "360Spider"; Google's parser finds no name`, ""},
		{"* all", `Google's parser reads it as "*"; to other crawlers it names no crawler`, "*"},
		{"(all)", "it names no crawler", ""},
	} {
		body := []byte("User-agent: " + test.value + "\nDisallow: /\n")
		found := Check(body, robots.ParseOptions{})
		isExpected := func(f Finding) bool { return f.Code == "AGENT-02" && f.Effect == test.effect }
		if !slices.ContainsFunc(found, isExpected) {
			t.Errorf("%q: no effect %q in %+v", test.value, test.effect, found)
		}
		if got := strings.Join(robots.Parse(body, robots.GoogleOSS).AgentTokens(), " "); got != test.google {
			t.Errorf("%q: google-oss reads %q, want %q", test.value, got, test.google)
		}
	}
	found := Check([]byte("User-agent: (compatible; YandexBot)\nDisallow: /a\n"),
		robots.ParseOptions{Dialect: robots.Yandex})
	if len(found) != 1 || found[0].Severity != Hint || found[0].Code != "AGENT-02" {
		t.Errorf("a value that names a crawler to Yandex: %+v", found)
	}
}

// TestHostAndCleanParamProblems lists invalid Host and Clean-param values with their problems.
func TestHostAndCleanParamProblems(t *testing.T) {
	for value, correct := range map[string]bool{
		"www.myhost.ru": true, "https://myhost.ru": true, "myhost.ru:8080": true, "1host.ru": true,
		"www.myhost-.ru": false, "www.-myhost.ru": false, "www.myhost.ru:100000": false, "www.my_host.ru": false,
		".my-host.ru:8000": false, "my-host.ru.": false, "my..host.ru": false, "www.myhost.ru/": false,
		"www.myhost.ru:8080/": false, "http://www.myhost.ru": false, "213.180.194.129": false,
		"www.firsthost.ru,www.secondhost.ru": false, "www.firsthost.ru www.secondhost.ru": false, "": false,
		"h:": false, "h:0": false, "h:+1": false,
	} {
		if problem := hostDirectiveProblem(value); (problem == "") != correct {
			t.Errorf("HOST-10: Host %q: %q", value, problem)
		}
	}
	for value, correct := range map[string]bool{
		"abc /forum/showthread.php": true, "sid&sort /forumt/*.php": true, "someTrash&otherTrash": true,
		strings.Repeat("ж", 500): true,
		"sid /a?b":               false, strings.Repeat("a", 501): false, "": false, "a&&b": true, "&": false,
		"/a sid": false, "sid a": false,
	} {
		if problem := cleanParamProblem(value); (problem == "") != correct {
			t.Errorf("CLEAN-10: Clean-param %q: %q", value, problem)
		}
	}
}

// TestClassicExamples runs the examples of the 1994 standard.
func TestClassicExamples(t *testing.T) {
	ran := 0
	for _, text := range robotstest.Lines(t, "../testdata/robots-examples.jsonl") {
		var e robotstest.Example
		robotstest.Decode(t, text, &e)
		if e.Dialect != "classic" {
			continue
		}
		ran++
		t.Run(e.Req, func(t *testing.T) {
			c := parseOriginal1994(e.Robots)
			if got := c.allows(e.Agent, robotstest.URL(t, e.URL).PathAndQuery()); got != *e.Allowed {
				t.Errorf("%s: allowed = %v\n%s", e.URL, got, e.Robots)
			}
		})
	}
	if ran < 9 {
		t.Errorf("%d examples ran, want 9 or more", ran)
	}
}

// BenchmarkLint checks files of the maximum size that are constructed to be slow. The limits on what is
// compared keep each of them fast.
func BenchmarkLint(b *testing.B) {
	for name, line := range map[string]string{
		"wildcards": "Disallow: /*a*b*%d\n", "agents": "User-agent: a%d\nDisallow: /\n", "prefixes": "Disallow: /%d\n",
		"typos":           "Dissalow: /%d\n",
		"agents in a run": "User-agent: b%d\n",
	} {
		b.Run(name, func(b *testing.B) {
			var text strings.Builder
			text.WriteString("User-agent: *\n")
			for i := 0; text.Len() < robots.MaxFileBytes; i++ {
				fmt.Fprintf(&text, line, i)
			}
			text.WriteString("Disallow: /x\n")
			for b.Loop() {
				Check([]byte(text.String()), robots.ParseOptions{})
			}
		})
	}
}

// FuzzLint proves for every file that Check does not panic, and that its findings have a message and
// name lines that exist.
func FuzzLint(f *testing.F) {
	f.Add([]byte("User-agent: *\nCrawl-delay: 1\nUser-agent: b\nDisallow: /*a$\nAllow: *a\nDisallow /b\nHost: " +
		"x\nClean-param: a /b\n"))
	f.Add([]byte("\ufeff<html>\n\nUser-agent: *\rDisallow: http://h/\r\nDissalow: #\nAllow:\nSitemap: x\n\xff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		lines := len(strings.FieldsFunc(string(body), func(r rune) bool { return r == '\n' || r == '\r' }))
		lines += strings.Count(string(body), "\n") + strings.Count(string(body), "\r")
		for _, found := range Check(body, robots.ParseOptions{}) {
			if found.Line < 0 || found.Line > lines+1 || found.Message == "" {
				t.Errorf("%+v in a file of %d lines", found, lines)
			}
		}
	})
}

// TestLintIsBounded proves that the number of findings about one requirement is limited.
func TestLintIsBounded(t *testing.T) {
	if n := len(Check([]byte(strings.Repeat("nonsense\n", 10_000)),
		robots.ParseOptions{})); n > 2*maxFindingsPerRequirement {
		t.Errorf("%d findings", n)
	}
}
