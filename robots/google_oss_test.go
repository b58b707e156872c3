package robots

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

func TestOSSLines(t *testing.T) {
	room := maxGoogleOSSLineBytes - len("allow:/")
	for _, test := range []struct {
		name, body string
		want       []syntax.Line
	}{
		{"ends", "allow:/a\rallow:/b\r\nallow:/c\n\r\rallow:/d", []syntax.Line{
			testLine("/a", 1, syntax.Allow), testLine("/b", 2, syntax.Allow), testLine("/c", 3, syntax.Allow),
			testLine("/d", 6, syntax.Allow)}},
		{"mark", "\ufeffallow:/a", []syntax.Line{testLine("/a", 1, syntax.Allow)}},
		{"part of a mark", "\xefallow:/a", []syntax.Line{testLine("/a", 1, syntax.Allow)}},
		{"only one mark", "\ufeff\ufeffallow:/a\nallow:/b", []syntax.Line{testLine("/b", 2, syntax.Allow)}},
		{"mark, then the end", "\xef\xbb", nil},
		{"typos", "dissallow:/a\ndissalow:/b\ndisalow:/c\ndiasllow:/d\ndisallaw:/e\nuseragent:x\nuser " +
			"agent:y\nsite-map:z", []syntax.Line{
			testLine("/a", 1, syntax.Disallow), testLine("/b", 2, syntax.Disallow), testLine("/c", 3, syntax.Disallow),
			testLine("/d", 4, syntax.Disallow), testLine("/e", 5, syntax.Disallow),
			testLine("x", 6, syntax.UserAgent), testLine("y", 7, syntax.UserAgent), testLine("z", 8, syntax.Sitemap)}},
		{"unknown typos", "alow:/a\ndisllow:/b\nuser_agent:x\nagent:x", nil},
		{"beginnings of names", "Disallowed:/a\nAllow-all:/b\nUSER-AGENTS:x\nsitemaps:y\nuser agent name:z",
			[]syntax.Line{
				testLine("/a", 1, syntax.Disallow), testLine("/b", 2, syntax.Allow), testLine("x", 3, syntax.UserAgent),
				testLine("y", 4, syntax.Sitemap), testLine("z", 5, syntax.UserAgent)}},
		{"only ASCII folds", "di\u017fallow:/a", nil},
		{"colon forgotten", "Disallow /a\nallow\t \t/b\nuser-agent *",
			[]syntax.Line{testLine("/a", 1, syntax.Disallow), testLine("/b", 2, syntax.Allow),
				testLine("*", 3, syntax.UserAgent)}},
		{"colon forgotten, three words", "Disallow /a /b\nuser agent x", nil},
		{"colon forgotten, other white space", "Disallow\v/a\nDisallow \f/b",
			[]syntax.Line{testLine("/b", 2, syntax.Disallow)}},
		{"no name", ":/a\n : allow:/b\nallow\n:", nil},
		{"white space", "\v\f disallow \f:\t\v/a b\f\n", []syntax.Line{testLine("/a b", 1, syntax.Disallow)}},
		{"comments", "allow:/a#b\n#allow:/c\nallow#:/d\nallow /e #f",
			[]syntax.Line{testLine("/a", 1, syntax.Allow), testLine("/e", 4, syntax.Allow)}},
		{"NUL ends a line", "allow:/a\x00b\nallow\x00:/c\n\x00allow:/d\nallow:/e\x00#\n",
			[]syntax.Line{testLine("/a", 1, syntax.Allow), testLine("/e", 4, syntax.Allow)}},
		{"long line", "allow:/" + strings.Repeat("a", room+1) + "\nallow:/b", []syntax.Line{
			testLine("/"+strings.Repeat("a", room), 1, syntax.Allow), testLine("/b", 2, syntax.Allow)}},
		{"long white space", strings.Repeat(" ", maxGoogleOSSLineBytes) + "allow:/a\n", nil},
		{"extensions in full", "crawl-delay 5\ncrawl-delays:6", []syntax.Line{testLine("5", 1, syntax.CrawlDelay)}},
	} {
		t.Run("google-oss/"+test.name, func(t *testing.T) {
			if got := Parse([]byte(test.body), GoogleOSS).lines; !slices.Equal(got, test.want) {
				t.Errorf("lines of %q\n got %v\nwant %v", test.body, got, test.want)
			}
		})
	}
}

func TestOSSLimit(t *testing.T) {
	body := []byte("User-agent: *\n" + strings.Repeat("#", MaxFileBytes) + "\nDisallow: /private")
	for _, test := range []struct {
		name  string
		limit int
		lines int
	}{{"google-oss/none", 0, 2}, {"FMT-11/as set", MaxFileBytes, 1}, {"FMT-09/raised", 2 * MaxFileBytes, 2}} {
		t.Run(test.name, func(t *testing.T) {
			f := ParseOptions{Dialect: GoogleOSS, MaxBytes: test.limit}.Parse(body)
			if len(f.lines) != test.lines {
				t.Errorf("%d lines, want %d", len(f.lines), test.lines)
			}
		})
	}
}

func TestOSSGroup(t *testing.T) {
	for _, test := range []struct {
		name, body, agent string
		blocks            string // which of /a /b /c is disallowed; empty: all are allowed
	}{
		{"own group first", "user-agent: *\ndisallow: /a\nuser-agent: x\ndisallow: /b", "x", "/b"},
		{"own group without rules", "user-agent: *\ndisallow: /a\nuser-agent: x", "x", ""},
		{"own group with void rules", "user-agent: *\ndisallow: /a\nuser-agent: x\ndisallow:", "x", ""},
		{"case", "user-agent: FOO-bar\ndisallow: /a", "foo-BAR", "/a"},
		{"leading token", "user-agent: foo/1.0 bar\ndisallow: /a", "foo", "/a"},
		{"digits are not read", "user-agent: foo2\ndisallow: /a", "foo", "/a"},
		{"names with digits are never met", "user-agent: *\ndisallow: /a\nuser-agent: foo2\ndisallow: /b", "foo2",
			"/a"},
		{"names with more than a token neither", "user-agent: *\ndisallow: /a\nuser-agent: foo\ndisallow: /b",
			"foo/1.0", "/a"},
		{"names of other letters neither", "user-agent: *\ndisallow: /a\nuser-agent: slurp\ndisallow: /b", "\u017flurp",
			"/a"},
		{"no wider tokens", "user-agent: *\ndisallow: /a\nuser-agent: googlebot\ndisallow: /b", "Googlebot-News", "/a"},
		{"star binds all", "user-agent: *\ndisallow: /a", "YandexDirect", "/a"},
		{"star and white space", "user-agent: *\vx\ndisallow: /a", "y", "/a"},
		{"star and text", "user-agent: *x\ndisallow: /a", "x", ""},
		{"no name meets no token", "user-agent: 9\ndisallow: /a", "", "/a"},
		{"sitemap ends no run", "user-agent: x\nsitemap: z\nuser-agent: y\ndisallow: /a", "x", "/a"},
		{"unknown line ends no run", "user-agent: x\nnoindex: z\ncrawl-delay: 1\nuser-agent: y\ndisallow: /a", "x",
			"/a"},
		{"empty rule ends a run", "user-agent: x\nallow:\nuser-agent: y\ndisallow: /a", "x", ""},
		{"own line in a run with a star", "user-agent: *\nuser-agent: x\ndisallow: /a\nuser-agent: *\ndisallow: /b",
			"x", "/a"},
		{"rules before any group", "disallow: /a\nuser-agent: x\ndisallow: /b", "x", "/b"},
	} {
		t.Run("google-oss/"+test.name, func(t *testing.T) {
			rules := Parse([]byte(test.body), GoogleOSS).RulesFor(AgentFromName(test.agent))
			for _, path := range []string{"/a", "/b", "/c"} {
				if v := rules.CheckRawURL("http://h" + path); v.Allowed != (path != test.blocks) {
					t.Errorf("%s: %+v", path, v)
				}
			}
		})
	}
	own, err := NewAgent("examplebot", "wider")
	if err != nil {
		t.Fatal(err)
	}
	rules := Parse([]byte("user-agent: ExampleBot\ncrawl-delay: 2\ndisallow: /a"), GoogleOSS).RulesFor(own)
	if d, ok := rules.CrawlDelay(); rules.CheckRawURL("/a").Allowed || !ok || d != 2*time.Second {
		t.Errorf("the agent of a project is not met by its token: %q, %v", rules.groupAgents, d)
	}
}

func TestOSSCheckRaw(t *testing.T) {
	for _, test := range []struct {
		name, rules, url string
		want             string // Verdict.Rule
		line             int
	}{
		{"longest", "disallow: /a\nallow: /a/b", "http://h/a/b", "allow: /a/b", 3},
		{"tie", "disallow: /a\nallow: /a", "http://h/a", "allow: /a", 3},
		{"first of equals", "disallow: /*\ndisallow: /?", "http://h/?", "disallow: /*", 2},
		{"trailing stars count", "disallow: /a**\nallow: /ab", "http://h/ab", "disallow: /a**", 2},
		{"dollar counts after a star", "allow: /a*$\ndisallow: /ab", "http://h/abc", "allow: /a*$", 2},
		{"escapes count as written", "disallow: /%61*\nallow: /*b", "http://h/%61b", "disallow: /%61*", 2},
		{"escaping counts", "disallow: /é\nallow: /*****", "http://h/%C3%A9", "disallow: /é", 2},
		{"escapes are not decoded", "disallow: /%61", "http://h/a", "", 0},
		{"hex digits of a pattern", "disallow: /%aa", "http://h/%AA", "disallow: /%aa", 2},
		{"not those of a URL", "disallow: /%aa", "http://h/%aa", "", 0},
		{"stray percent sign", "disallow: /%%aa", "http://h/%%AA", "disallow: /%%aa", 2},
		{"URLs are not escaped", "disallow: /é", "http://h/é", "", 0},
		{"dot segments", "disallow: /b", "http://h/a/../b", "", 0},
		{"dollar within", "disallow: /a$b", "http://h/a$b", "disallow: /a$b", 2},
		{"dollar at the end", "disallow: /a$", "http://h/a?b", "", 0},
		{"two dollars", "disallow: /*$$", "http://h/a$", "disallow: /*$$", 2},
		{"no slash", "disallow: a\ndisallow: $\ndisallow: http://h/", "http://h/a", "", 0},
		{"/robots.txt", "disallow: /", "http://h/robots.txt", "disallow: /", 2},
		{"index page", "disallow: /\nallow: /a/index.html", "http://h/a/", "allow: /a/index.html", 3},
		{"index page opens no more", "disallow: /\nallow: /a/index.html", "http://h/a/b", "disallow: /", 2},
		{"index page itself", "disallow: /\nallow: /a/index.htm", "http://h/a/index.html", "allow: /a/index.htm", 3},
		{"index page, more follows", "disallow: /\nallow: /*/index.htm*$", "http://h/a/", "allow: /*/index.htm*$", 3},
		{"index page of another folder", "disallow: /\nallow: /index.html/b", "http://h/", "disallow: /", 2},
		{"index page, length of the folder", "disallow: /a*/\nallow: /a/index.html", "http://h/a/",
			"allow: /a/index.html", 3},
		{"index page, folder beaten", "disallow: /a***\nallow: /a/index.html", "http://h/a/", "disallow: /a***", 2},
		{"index page disallowed", "disallow: /index.html", "http://h/", "", 0},
		{"no URL", "disallow: /", "", "disallow: /", 2},
	} {
		t.Run("google-oss/"+test.name, func(t *testing.T) {
			rules := Parse([]byte("user-agent: *\n"+test.rules), GoogleOSS).RulesFor(Agent{})
			want := Verdict{Allowed: !strings.HasPrefix(test.want, "disallow"), Rule: test.want,
				Line: test.line, Group: "*"}
			if got := rules.CheckRawURL(test.url); got != want {
				t.Errorf("%s: got %+v, want %+v\n%s", test.url, got, want, test.rules)
			}
		})
	}
}

func TestOSSPath(t *testing.T) {
	for url, want := range map[string]string{
		"":                        "/",
		"http://h":                "/",
		"http://h/":               "/",
		"http://h/a?b;c":          "/a?b;c",
		"http://h?b":              "/?b",
		"http://h;b/c":            "/;b/c",
		"h/a":                     "/a",
		"//h/a":                   "/a",
		"///a":                    "/a",
		"/a":                      "/a",
		"//http://h/a":            "/a",
		"h/http://x/a":            "/http://x/a",
		"?u=http://x/a":           "/?u=http://x/a",
		"http://h/a#b":            "/a",
		"http://h/a#/b":           "/a",
		"http://h#/a":             "/",
		"a#://h/b":                "/",
		"http://h/a://b/c":        "/a://b/c",
		"http:///a":               "/a",
		"http://h//a/../b":        "//a/../b",
		"mailto:a@b":              "/",
		"http://h/a\x00b":         "/a",
		"http://h?\x00b":          "/?",
		"http://\x00h/a":          "/a",
		"http://h/%7Ea/\xff/\x01": "/%7Ea/\xff/\x01",
	} {
		if got := googleOSSPath(url); got != want {
			t.Errorf("path of %q = %q, want %q", url, got, want)
		}
	}
}

// TestCheckRaw compares CheckRawURL and Check on the same URLs, in each dialect.
func TestCheckRaw(t *testing.T) {
	for _, d := range []Dialect{Google, GoogleOSS} {
		rules := Parse([]byte("user-agent: *\ndisallow: /a\ndisallow: /robots"), d).RulesFor(Agent{})
		if v := rules.CheckRawURL("HTTP://H:80/a"); v != rules.Check(robotstest.URL(t, "http://h/a")) || v.Allowed {
			t.Errorf("%v: %+v", d, v)
		}
		if !rules.Check(robotstest.URL(t, "http://h/robots.txt")).Allowed {
			t.Errorf("FETCH-29: %v: a crawl may not have /robots.txt", d)
		}
		if got := rules.CheckRawURL("http://h/robots.txt").Allowed; got != (d == Google) {
			t.Errorf("%v: /robots.txt allowed = %v", d, got)
		}
		if got := rules.CheckRawURL("no URL").Allowed; got != (d == GoogleOSS) {
			t.Errorf("%v: what is no URL allowed = %v", d, got)
		}
		unnamed := Parse([]byte("user-agent: y\ndisallow: /"), d).RulesFor(AgentFromName("x"))
		if got := unnamed.CheckRawURL("no URL").Allowed; got != (d == GoogleOSS) {
			t.Errorf("%v: nobody is named: what is no URL allowed = %v", d, got)
		}
	}
}
