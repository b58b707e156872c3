package robots

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

func TestLimit(t *testing.T) {
	const head, rule = "User-agent: *\n", "Disallow: /private"
	// upTo returns a file whose rule ends beyond bytes after the limit.
	upTo := func(limit, beyond int) string {
		padding := limit + beyond - len(head) - len(rule) - 1
		return head + strings.Repeat("#", padding) + "\n" + rule
	}
	for _, test := range []struct {
		name  string
		limit int
		body  string
		rules int
	}{
		{"FMT-08/ends at the limit", 0, upTo(MaxFileBytes, 0), 1},
		{"FMT-08/LF after the limit", 0, upTo(MaxFileBytes, 0) + "\n", 1},
		{"FMT-08/CR after the limit", 0, upTo(MaxFileBytes, 0) + "\r\nAllow: /", 1},
		{"FMT-08/begins after the limit", 0, upTo(MaxFileBytes, 0) + "\nAllow: /", 1},
		{"FMT-11/one byte too long", 0, upTo(MaxFileBytes, 1), 0},
		{"FMT-11/one byte too long, more follows", 0, upTo(MaxFileBytes, 1) + "\nAllow: /", 0},
		{"FMT-11/comment goes on past the limit", 0, upTo(MaxFileBytes, 0) + " # why", 0},
		{"FMT-11/one line without end", 0, rule + strings.Repeat("x", MaxFileBytes), 0},
		{"FMT-11/lines end in CR", 0, head[:len(head)-1] + "\r" + rule + "\r" + strings.Repeat("#", MaxFileBytes), 1},
		{"FMT-09/raised", MaxFileBytes + 1, upTo(MaxFileBytes, 1), 1},
		{"FMT-09/never lowered", 10, upTo(MaxFileBytes, 0), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := ParseOptions{MaxBytes: test.limit}.Parse([]byte(test.body))
			rules := slices.DeleteFunc(f.lines, func(l syntax.Line) bool {
				return l.Field != syntax.Disallow && l.Field != syntax.Allow
			})
			if len(rules) != test.rules {
				t.Errorf("read rules %v, want %d", rules, test.rules)
			}
		})
	}
}

func TestLines(t *testing.T) {
	for _, test := range []struct {
		name, body string
		want       []syntax.Line
	}{
		{"FMT-02/mixed ends", "allow:/a\rallow:/b\r\nallow:/c\n\r\rallow:/d\n\nallow:/e", []syntax.Line{
			testLine("/a", 1, syntax.Allow), testLine("/b", 2, syntax.Allow), testLine("/c", 3, syntax.Allow),
			testLine("/d", 6, syntax.Allow), testLine("/e", 8, syntax.Allow)}},
		{"FMT-03/BOM", "\ufeffDisallow: /a", []syntax.Line{testLine("/a", 1, syntax.Disallow)}},
		{"FMT-03/BOM only at the start", "#\n\ufeffDisallow: /a", nil},
		{"FMT-15/UTF-16", "\xff\xfed\x00i\x00s\x00a\x00l\x00l\x00o\x00w\x00:\x00/\x00", nil},
		{"SYN-01/no colon", "Disallow /a", nil},
		{"SYN-03/white space", "\t Disallow\t : \t/a b\t ", []syntax.Line{testLine("/a b", 1, syntax.Disallow)}},
		{"SYN-03/no other white space", "\vDisallow: /a\nDisallow: /b\u00a0",
			[]syntax.Line{testLine("/b\u00a0", 2, syntax.Disallow)}},
		{"SYN-04/comments", "#Disallow: /a\nDisallow: /b#c:d\nDisallow#: /e",
			[]syntax.Line{testLine("/b", 2, syntax.Disallow)}},
		{"SYN-05/case", "DisAllow: /A\nUSER-AGENT: X",
			[]syntax.Line{testLine("/A", 1, syntax.Disallow), testLine("X", 2, syntax.UserAgent)}},
		{"SYN-05/only ASCII folds", "di\u017fallow: /a\ndi\u017fallo: /a", nil},
		{"SYN-08/typos", "dissallow: /a\nuseragent: x\nuser agent: x\nsite-map: x", nil},
		{"SYN-01/colons in the value", "sitemap: https://h:1/",
			[]syntax.Line{testLine("https://h:1/", 1, syntax.Sitemap)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Parse([]byte(test.body), Google).lines; !slices.Equal(got, test.want) {
				t.Errorf("lines of %q\n got %v\nwant %v", test.body, got, test.want)
			}
		})
	}
}

// TestBodyMayBeReused proves that neither File nor Rules read the body again.
func TestBodyMayBeReused(t *testing.T) {
	body := []byte("User-agent: *\nDisallow: /a\nDisallow: /*b\nSitemap: http://h/s\n")
	f := Parse(body, Google)
	r := f.RulesFor(Agent{})
	want := [...]Verdict{r.Check(robotstest.URL(t, "http://h/a")), r.Check(robotstest.URL(t, "http://h/xb"))}
	clear(body)
	r = f.RulesFor(Agent{})
	got := [...]Verdict{r.Check(robotstest.URL(t, "http://h/a")), r.Check(robotstest.URL(t, "http://h/xb"))}
	if got != want || want[0].Allowed || want[1].Allowed {
		t.Errorf("verdicts after the body changed = %v, want %v", got, want)
	}
	if s := urlStrings(f.Sitemaps()); !slices.Equal(s, []string{"http://h/s"}) {
		t.Errorf("sitemaps after the body changed = %q", s)
	}
}

func TestSitemaps(t *testing.T) {
	body := strings.Join([]string{
		"Sitemap: https://h/b.xml", "User-agent: x", "sitemap:https://H:443/a b.xml # again below",
		"Sitemap: https://h/a%20b.xml", "Sitemap:", "Sitemap: s.xml", "Sitemap: mailto:a@b", "Sitemap: http:///s.xml",
		`Sitemap: https:\s.xml`, "Sitemap: http:/a://s.xml", "Sitemap: http://?s", "Sitemap: //h/s.xml",
		"Sitemap: https://cdn.example/B.xml",
	}, "\n")
	want := []string{"https://h/b.xml", "https://h/a%20b.xml", "https://cdn.example/B.xml"}
	if got := urlStrings(Parse([]byte(body), Google).Sitemaps()); !slices.Equal(got, want) {
		t.Errorf("sitemaps = %q, want %q", got, want)
	}
}

func TestAgents(t *testing.T) {
	f := Parse([]byte("User-agent: Bot/1\nUser-agent: *\nDisallow: /\nUser-agent: bot\nUser-agent:\nUser-agent: "+
		"(x)\nUser-agent: Bot2\n"), Google)
	if got, want := f.AgentTokens(), []string{"bot", "*", "bot2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzParse proves for every file that parsing does not panic and gives the same result each time, that
// the result does not grow faster than the body, and that the kind of line ends does not matter.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "\ufeff", "User-agent: *\nDisallow: /\n", "user-agent:a\ruser-agent:b\r\nallow:/*$\ncrawl-delay:.5",
		"Sitemap: https://h/\nSitemap: /\n", "<html>\n:\n::\n#:\nallow",
		"User-agent: *\nCrawl-delay: 99999999999999999999",
		"user-agent: *\ndisallow: /%\ndisallow: /**$\nallow: *\nallow: $",
		"User-agent: Googlebot/2.1\nUser-agent: *x\nDisallow: \xff/",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		file := Parse(body, Google)
		if again := Parse(bytes.Clone(body), Google); !reflect.DeepEqual(file, again) {
			t.Error("two readings differ")
		}
		size := 0
		for _, l := range file.lines {
			size += len(l.Field.String()) + len(l.Value)
		}
		if size > len(body) || len(file.Sitemaps()) > len(file.lines) {
			t.Errorf("%d bytes became %d", len(body), size)
		}
		if !bytes.ContainsRune(body, '\r') && len(body) < MaxFileBytes/2 {
			crlf := Parse(bytes.ReplaceAll(body, []byte("\n"), []byte("\r\n")), Google)
			if !slices.Equal(file.lines, crlf.lines) {
				t.Error("CR LF is read unlike LF")
			}
		}
		checkRules(t, file, AgentFromName("Googlebot-News"))
		checkRules(t, file, Agent{})
	})
}

// checkRules checks what must hold for the rules of every file.
func checkRules(t *testing.T, file *File, a Agent) {
	rules := file.RulesFor(a)
	if d, ok := rules.CrawlDelay(); d < 0 || d > 365*24*time.Hour || !ok && d != 0 {
		t.Errorf("Crawl-delay = %v, %v", d, ok)
	}
	for _, s := range []string{"http://h/", "http://h/a/%FF*$", "http://h/robots.txt"} {
		v := rules.Check(robotstest.URL(t, s))
		if v != file.RulesFor(a).Check(robotstest.URL(t, s)) {
			t.Errorf("%s: two verdicts differ", s)
		}
		if v.Group != rules.groupAgents || (v.Rule == "") != (v.Line == 0) ||
			!v.Allowed && !strings.HasPrefix(v.Rule, "disallow: ") {
			t.Errorf("%s: %+v", s, v)
		}
	}
}

// testLine returns a parsed line.
func testLine(value string, number int32, field syntax.FieldKind) syntax.Line {
	return syntax.Line{Value: value, Number: number, Field: field}
}
