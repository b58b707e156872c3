package robots

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

func TestClean(t *testing.T) {
	for _, test := range []struct{ name, lines, path, want string }{
		{"CLEAN-02/a tab between the fields", "s\t/p", "/p?s=1", "/p"},
		{"CLEAN-02/three fields", "s /p /q", "/p?s=1", "/p?s=1"},
		{"CLEAN-02/no field", "", "/p?=1&", "/p?=1&"},
		{"CLEAN-02/empty names", "&s&& /p", "/p?s=1&=2&&t", "/p?=2&&t"},
		{"CLEAN-02/nothing but ampersands", "&&", "/p?=1&&", "/p?=1&&"},
		{"CLEAN-09/one field that looks like a path", "/p", "/p?s=1&/p=2", "/p?s=1"},
		{"CLEAN-10/an incorrect line among correct ones", "s /a?\nt", "/a?s=1&t=2", "/a?s=1"},
		{"CLEAN-12/stars", "s /p**", "/p/q?s=1", "/p/q"},
		{"CLEAN-14/characters, not bytes", "s&" + strings.Repeat("я", 496) + " /", "/p?s=1", "/p"},
		{"CLEAN-14/one too many", "s&" + strings.Repeat("я", 497) + " /", "/p?s=1", "/p?s=1"},
		{"CLEAN-21/name of no parameter", "s=1", "/p?s=1", "/p?s=1"},
		{"CLEAN-21/value that looks like a name", "s", "/p?t=s&u=1=s", "/p?t=s&u=1=s"},
		{"CLEAN-21/a question mark in the query", "s", "/p?t?s=1&s=?", "/p?t?s=1"},
		{"CLEAN-21/letters outside ASCII", "имя", "/p?%D0%B8%D0%BC%D1%8F=1&t=2", "/p?t=2"},
		{"CLEAN-21/escapes", "a%5b", "/p?a%5B=1&a[=2", "/p?a[=2"},
		{"CLEAN-21/no parameters", "s", "/p?", "/p?"},
		{"CLEAN-22/the query is not the path", "s /*x", "/p?s=1&x=2", "/p?s=1&x=2"},
		{"CLEAN-22/wildcard first", "s *.php", "/a/b.php?s=1", "/a/b.php"},
		{"CLEAN-22/wildcard alone", "s *", "/a?s=1", "/a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := Parse([]byte("Clean-param: "+strings.ReplaceAll(test.lines, "\n", "\nClean-param: ")), Google)
			got := file.URLCleaner().CleanURL(robotstest.URL(t, "https://example.com"+test.path))
			if want := "https://example.com" + test.want; got.String() != want {
				t.Errorf("%s of %s = %s, want %s", test.lines, test.path, got, want)
			}
		})
	}
}

func TestCleanNothing(t *testing.T) {
	if c := Parse([]byte("User-agent: *\nClean-param: a /b?c\n"), Yandex).URLCleaner(); c != nil {
		t.Errorf("a file without a correct line has the Cleaner %v", c)
	}
	var none *URLCleaner
	u := robotstest.URL(t, "https://example.com/?a=1")
	if got := none.CleanURL(u); got != u {
		t.Errorf("nil Cleaner: %v", got)
	}
	if got := Parse([]byte("Clean-param: a"), Yandex).URLCleaner().CleanURL(decorum.URL{}); !got.IsZero() {
		t.Errorf("zero URL: %v", got)
	}
}

// TestCleanAllocates proves that CleanURL does not allocate for a URL without parameters to remove.
func TestCleanAllocates(t *testing.T) {
	c := Parse([]byte("Clean-param: s&ref /shop/*.php\nClean-param: sid /forum"), Google).URLCleaner()
	for _, path := range []string{"/shop/a.php", "/shop/a.php?page=1&sort=2", "/news?s=1&ref=2", "/forum/x?s=1"} {
		u := robotstest.URL(t, "https://example.com"+path)
		if n := testing.AllocsPerRun(100, func() { c.CleanURL(u) }); n > 0 {
			t.Errorf("%s: %v allocations", path, n)
		}
	}
}

// TestCleanLimits proves how many lines are applied, and how many wildcards a line may have.
func TestCleanLimits(t *testing.T) {
	var b strings.Builder
	for i := range 10 * maxCleanParamLines {
		fmt.Fprintf(&b, "Clean-param: w%d /*a*b%d\nClean-param: p%d /p\n", i, i, i)
	}
	c := Parse([]byte(b.String()), Google).URLCleaner()
	if len(c.paths) != maxCleanParamLines || c.numWildcardPaths != maxCleanParamWildcardLines {
		t.Errorf("%d lines are heeded, %d with wildcards, want %d and %d", len(c.paths), c.numWildcardPaths,
			maxCleanParamLines, maxCleanParamWildcardLines)
	}
	for stars, applied := range map[int]bool{syntax.MaxCleanParamWildcards: true,
		syntax.MaxCleanParamWildcards + 1: false} {
		line := "s " + strings.Repeat("*a", stars) + "*"
		c := Parse([]byte("Clean-param: "+line), Google).URLCleaner()
		if (c != nil) != applied {
			t.Errorf("%d wildcards: heeded %v, want %v", stars, c != nil, applied)
		}
	}
}

// TestCleanHostile limits the work that a hostile file causes per URL: the literals searched in its
// path, and the line numbers read. Names that the URL lacks must cause no work, and no URL that stays
// unchanged may cause allocations.
func TestCleanHostile(t *testing.T) {
	for _, h := range hostileCleanParams {
		c := Parse([]byte(h.file), Google).URLCleaner()
		u := robotstest.URL(t, "https://example.com"+h.path)
		literals, numbers := countCleanWork(c, u)
		if limit := maxCleanParamLines + maxCleanParamWildcardLines*syntax.MaxCleanParamWildcards; literals > limit ||
			strings.Contains(h.name, "other names") && literals > 0 {
			t.Errorf("%s: %d literals are looked for in the path, want at most %d", h.name, literals, limit)
		}
		if limit := maxLineList * (1 + strings.Count(h.path, "&")); numbers > limit {
			t.Errorf("%s: %d numbers of lines are looked at, want at most %d", h.name, numbers, limit)
		}
		if clean := c.CleanURL(u); clean != u {
			continue // a new URL was allocated
		}
		if n := testing.AllocsPerRun(10, func() { c.CleanURL(u) }); n > 0 {
			t.Errorf("%s: %v allocations", h.name, n)
		}
	}
}

// countCleanWork returns how many literals CleanURL searches in the path of u, and how many line
// numbers, or words of a set, it reads for the parameters.
func countCleanWork(c *URLCleaner, u decorum.URL) (literals, numbers int) {
	if c == nil {
		return 0, 0
	}
	_, query, _ := strings.Cut(u.PathAndQuery(), "?")
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		if l := c.linesByParam[name]; l != nil && l.lineSet != nil {
			numbers += len(l.lineSet)
		} else if l != nil {
			numbers += len(l.list)
		}
	}
	set := c.linesForQuery(query)
	for i, p := range c.paths {
		if set[i/64]&(1<<(i%64)) != 0 {
			literals += 1 + p.pattern.NumWildcards()
		}
	}
	return literals, numbers
}

// TestCleanManyNames proves that a parameter is found in each of its lines, even if they are more than
// linesNamingParam.list may have.
func TestCleanManyNames(t *testing.T) {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "Clean-param: s&t%d /p%d/\n", i, i)
	}
	file := Parse([]byte(b.String()), Google)
	for i := range 201 {
		page := fmt.Sprintf("https://example.com/p%d/", i)
		clean, removed := file.ExplainURLCleaning(robotstest.URL(t, page+"?s=1&u=2"))
		switch want := page + "?u=2"; {
		case i < 200 && (clean.String() != want || len(removed) != 1 || removed[0].Line != i+1):
			t.Errorf("%v, %v; want %s by line %d", clean, removed, want, i+1)
		case i == 200 && len(removed) > 0:
			t.Errorf("%v, %v; want nothing", clean, removed)
		}
	}
}

// TestCleanProperties proves CLEAN-21 on random files and URLs: CleanURL is idempotent, the order of
// parameters and of lines does not matter, and the remaining parameters do not change.
func TestCleanProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "ab", "A", "", "sid", "x%20y", "é"}
	places := []string{"", " /", " /p", " /p/*.php", " *q", " /q"}
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	for range 3000 {
		lines := make([]string, r.IntN(5))
		for i := range lines {
			lines[i] = "Clean-param: " + pick(names) + "&" + pick(names) + pick(places)
		}
		parameters := make([]string, r.IntN(6))
		for i := range parameters {
			parameters[i] = pick(names) + pick([]string{"", "=", "=1", "=a&=", "=%"})
		}
		path := pick([]string{"/", "/p", "/p/a.php", "/a/q"})
		c := Parse([]byte(strings.Join(lines, "\n")), Yandex).URLCleaner()
		remaining := remainingParams(t, c, path, parameters)
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		if got := remainingParams(t, Parse([]byte(strings.Join(lines, "\n")), Yandex).URLCleaner(), path,
			parameters); !slices.Equal(got, remaining) {
			t.Fatalf("%q leaves %q of %q, in another order of lines %q", lines, remaining, parameters, got)
		}
		r.Shuffle(len(parameters), func(i, j int) { parameters[i], parameters[j] = parameters[j], parameters[i] })
		got := remainingParams(t, c, path, parameters)
		slices.Sort(got)
		slices.Sort(remaining)
		if !slices.Equal(got, remaining) {
			t.Fatalf("%q leaves %q, but in the order %q of parameters %q", lines, remaining, parameters, got)
		}
	}
}

// remainingParams cleans a URL and returns its remaining parameters. It fails the test if cleaning the
// result changes it, or if the parameters are not among those of the URL, in the same order.
func remainingParams(t *testing.T, c *URLCleaner, path string, parameters []string) []string {
	t.Helper()
	u := robotstest.URL(t, "https://example.com"+path+"?"+strings.Join(parameters, "&"))
	clean := c.CleanURL(u)
	if again := c.CleanURL(clean); again != clean {
		t.Fatalf("%v is cleaned to %v, and that to %v", u, clean, again)
	}
	_, before, _ := strings.Cut(u.PathAndQuery(), "?")
	left, query, any := strings.Cut(clean.PathAndQuery(), "?")
	if left != path || u.Origin() != clean.Origin() {
		t.Fatalf("%v is cleaned to %v", u, clean)
	}
	if !any {
		return nil
	}
	remaining := strings.Split(query, "&")
	rest := strings.Split(before, "&")
	for _, p := range remaining {
		i := slices.Index(rest, p)
		if i < 0 {
			t.Fatalf("%v is cleaned to %v: %q was not there", u, clean, p)
		}
		rest = rest[i+1:]
	}
	return remaining
}

// FuzzClean proves for any line and URL that CleanURL is idempotent, and that its result equals that of
// refClean.
func FuzzClean(f *testing.F) {
	f.Add("s&ref /forum*/showthread.php", "/forum_old/showthread.php", "s=681498605&t=8243&ref=1311")
	f.Add("a%", "/", "a%&41=2&a")
	f.Add("имя\t*", "/p", "имя&%d0%b8")
	f.Add("s /p /q", "/p", "s#t")
	f.Fuzz(func(t *testing.T, value, path, query string) {
		u, err := decorum.ParseURL("https://example.com/" + path + "?" + query)
		if err != nil || strings.ContainsAny(value, "#\r\n") {
			t.Skip()
		}
		c := Parse([]byte("Clean-param:"+value), Google).URLCleaner()
		clean := c.CleanURL(u)
		if again := c.CleanURL(clean); again != clean {
			t.Fatalf("%q: %v is cleaned to %v, and that to %v", value, u, clean, again)
		}
		if want := refClean(value, u.String()); clean.String() != want {
			t.Errorf("%q: %v is cleaned to %v, want %s", value, u, clean, want)
		}
	})
}

// refClean is a slow and simple CleanURL for one line.
func refClean(value, url string) string {
	fields := strings.Split(strings.Trim(strings.ReplaceAll(value, "\t", " "), " "), " ")
	fields = slices.DeleteFunc(fields, func(s string) bool { return s == "" })
	page, query, any := strings.Cut(url, "?")
	path := strings.TrimPrefix(page, "https://example.com")
	if len(fields) == 1 {
		fields = append(fields, "/")
	}
	if !any || len(fields) != 2 || len([]rune(strings.Trim(value, " \t"))) > 500 || !refPathMatches(fields[1], path) {
		return url
	}
	var remaining []string
	for _, p := range strings.Split(query, "&") {
		name, _, _ := strings.Cut(p, "=")
		named := slices.ContainsFunc(strings.Split(fields[0], "&"), func(s string) bool {
			u, err := decorum.ParseURL("https://example.com/?" + s)
			return s != "" && err == nil && u.PathAndQuery() == "/?"+name
		})
		if !named || name == "" {
			remaining = append(remaining, p)
		}
	}
	if len(remaining) == 0 {
		return page
	}
	return page + "?" + strings.Join(remaining, "&")
}

// refPathMatches reports whether the path pattern of a line matches the beginning of a path.
func refPathMatches(pattern, path string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-/*_"
	if strings.Trim(pattern, letters) != "" || pattern[0] != '/' && pattern[0] != '*' {
		return false
	}
	parts := strings.Split(pattern, "*")
	if len(slices.DeleteFunc(slices.Clone(parts[1:]), func(s string) bool {
		return s == ""
	})) > syntax.MaxCleanParamWildcards {
		return false
	}
	rest, ok := strings.CutPrefix(path, parts[0])
	for _, part := range parts[1:] {
		var found bool
		_, rest, found = strings.Cut(rest, part)
		ok = ok && found
	}
	return ok
}

func BenchmarkClean(b *testing.B) {
	c := Parse([]byte("Clean-param: sid&ref /forum*/showthread.php\nClean-param: orderby&filter&oid&parent_oid /\n"),
		Google).URLCleaner()
	for name, path := range map[string]string{
		"no query":            "/catalog/page",
		"nothing to take off": "/catalog?page=3&sort=price&id=17",
		"two to take off":     "/catalog?orderby=price&page=3&oid=5",
	} {
		u := robotstest.URL(b, "https://example.com"+path)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.CleanURL(u)
			}
		})
	}
}

// hostileCleanParams are files of about 500 KB whose lines are as costly as the limits permit, with
// URLs that cause the cost.
var hostileCleanParams = []struct{ name, file, path string }{
	{"wildcards, other names", costlyCleanParamLines(func(i int) string {
		return fmt.Sprintf("p%d /%sb", i, strings.Repeat("*a", 200))
	}), "/" + strings.Repeat("a", 1900) + "?page=2&sort=price"},
	{"wildcards, the same name", costlyCleanParamLines(func(i int) string {
		return fmt.Sprintf("s /%sb%d", strings.Repeat("*a", 200), i)
	}), "/" + strings.Repeat("a", 1900) + "?s=1&sort=price"},
	{"a few wildcards, the same name", costlyCleanParamLines(func(i int) string {
		return fmt.Sprintf("s /*%sb*a%d", strings.Repeat("a", 200), i)
	}), "/" + strings.Repeat("a", 1900) + "?s=1&sort=price"},
	{"a name many times", costlyCleanParamLines(func(i int) string {
		return strings.Repeat("t&", 200) + " /"
	}), "/p?" + strings.Repeat("t&", 900)},
}

// costlyCleanParamLines returns 1100 lines, more than maxCleanParamLines.
func costlyCleanParamLines(line func(i int) string) string {
	var b strings.Builder
	for i := range 1100 {
		b.WriteString("Clean-param: " + line(i) + "\n")
	}
	return b.String()
}

func BenchmarkCleanHostile(b *testing.B) {
	for _, h := range hostileCleanParams {
		c := Parse([]byte(h.file), Google).URLCleaner()
		u := robotstest.URL(b, "https://example.com"+h.path)
		b.Run(h.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.CleanURL(u)
			}
		})
	}
}
