package page_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// markedLines returns the IDs of the lines of robots.txt that a page marks, by their mark.
func markedLines(doc *html.Node) map[string][]string {
	marks := map[string][]string{}
	for _, li := range elements(doc, "li") {
		if class, id := attr(li, "class"), attr(li, "id"); class != "" && strings.HasPrefix(id, "L") {
			marks[class] = append(marks[class], id)
		}
	}
	return marks
}

// The page marks the line that decides a URL, the lines that match and lose, and the group, with
// every kind of line ending.
func TestDecidingLine(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		d := newFakeDaemon()
		d.robots = strings.Join([]string{"# ours", "User-agent: *", "Disallow: /", "", "User-agent: examplebot",
			"Allow: /private/press", "Disallow: /private/", "Disallow: /priv"}, end)
		b := openBrowser(t, d, readToken)
		for path, want := range map[string]map[string]string{
			"/private/x":     {"decides": "[L7]", "loses": "[L8]", "group": "[L5]"},
			"/private/press": {"decides": "[L6]", "loses": "[L7 L8]", "group": "[L5]"},
			"/open":          {"group": "[L5]"},
		} {
			a := b.get("/projects/books/explain?url=https://shop.example" + path)
			got := markedLines(a.document(t))
			for _, class := range []string{"decides", "loses", "group"} {
				if lines := fmt.Sprint(got[class]); len(got[class]) > 0 && lines != want[class] ||
					len(got[class]) == 0 && want[class] != "" {
					t.Errorf("%q %s: %s: %s, want %s", end, path, class, lines, want[class])
				}
			}
			verdict := map[bool]string{true: "disallowed by robots.txt",
				false: "allowed by robots.txt"}[path == "/private/x"]
			if word := textOf(findByClass(a.document(t), "p", "word")); word != verdict {
				t.Errorf("%s: %q, want %q", path, word, verdict)
			}
		}
	}
}

// findByClass returns the first element with the given name and class.
func findByClass(doc *html.Node, name, class string) *html.Node {
	list := elements(doc, name)
	i := slices.IndexFunc(list, func(n *html.Node) bool {
		return slices.Contains(strings.Fields(attr(n, "class")), class)
	})
	if i < 0 {
		return &html.Node{}
	}
	return list[i]
}

// The page marks no line of an old version, because the verdict does not come from it.
func TestOldVersion(t *testing.T) {
	b := openBrowser(t, newFakeDaemon(), readToken)
	a := b.get("/projects/books/hosts/shop.example?url=https://shop.example/private/x&version=fedcba9876543210")
	if marks := markedLines(a.document(t)); len(marks) > 0 || !strings.Contains(a.text, "This is an old version") {
		t.Errorf("marks %v on a version that is not in force", marks)
	}
}

// The page of a robots.txt of maximum length has a limited size. It shows the deciding line and
// links to the raw file.
func TestLongFiles(t *testing.T) {
	const size = 500 << 10
	manyLines := "User-agent: *\n" + strings.Repeat("#\n", 100_000-3) + "Disallow: /private/\n"
	for name, text := range map[string]string{
		"100,000 lines": manyLines, "one line": "User-agent: *\nDisallow: /private/\nDisallow: /" +
			strings.Repeat("é", size/2), "no text": "", "blank lines": strings.Repeat("\r\n", size/2),
	} {
		d := newFakeDaemon()
		d.robots = text
		b := openBrowser(t, d, readToken)
		a := b.get("/projects/books/hosts/shop.example?url=https://shop.example/private/x")
		if a.status != http.StatusOK || len(a.text) > 500<<10 {
			t.Errorf("%s: status %d, a page of %d bytes", name, a.status, len(a.text))
		}
		if decides := markedLines(a.document(t))["decides"]; strings.Contains(text, "/private/") && len(decides) != 1 {
			t.Errorf("%s: the deciding line is not on the page", name)
		}
		raw := b.get("/projects/books/robots.txt?origin=https://shop.example")
		if raw.text != text || raw.header.Get("Content-Type") != "text/plain; charset=utf-8" ||
			raw.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: the raw file is %d bytes, %v", name, len(raw.text), raw.header)
		}
	}
	d := newFakeDaemon()
	d.robots = manyLines
	a := openBrowser(t, d, readToken).get("/projects/books/hosts/shop.example?url=https://shop.example/private/x")
	if !strings.Contains(a.text, "98,993 lines are left out") {
		t.Error("the number of lines left out is not shown")
	}
}

// The difference of two versions shows the lines that differ, with a few lines around them, however
// long the files are.
func TestDiff(t *testing.T) {
	d := newFakeDaemon()
	d.oldRobots = "# old\n" + strings.Repeat("Disallow: /same\n", 5000) + "Disallow: /gone\n"
	d.robots = "# old\n" + strings.Repeat("Disallow: /same\n", 5000) + "Disallow: /<new>\n"
	b := openBrowser(t, d, readToken)
	page := b.get("/projects/books/hosts/shop.example").document(t)
	i := slices.IndexFunc(elements(page, "a"), func(n *html.Node) bool {
		return textOf(n) == "with the previous version"
	})
	if i < 0 {
		t.Fatal("no link to a diff")
	}
	a := b.get("/projects/books/hosts/shop.example" + attr(elements(page, "a")[i], "href"))
	var got []string
	for _, li := range elements(findByClass(a.document(t), "ol", "diff"), "li") {
		if class := attr(li, "class"); class != "same" {
			got = append(got, class+": "+textOf(li))
		}
	}
	want := []string{"left: 4,996 lines are the same", "removed: 5002 removed − Disallow: /gone",
		"added: 5002 added + Disallow: /<new>"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	d.oldRobots, d.robots = strings.Repeat("a\n", 100_000), strings.Repeat("b\n", 100_000)
	a = b.get("/projects/books/hosts/shop.example" + attr(elements(page, "a")[i], "href"))
	if len(a.text) > 500<<10 || !strings.Contains(a.text, "lines are left out") {
		t.Errorf("a page of %d bytes", len(a.text))
	}
}
