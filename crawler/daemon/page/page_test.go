package page_test

import (
	"net/http"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// pagePaths holds the paths of all pages.
var pagePaths = []string{
	"/", "/new", "/projects/books", "/projects/books?span=day&q=shop&sort=queued&order=desc",
	"/projects/books/blocked", "/projects/books/urls",
	"/projects/books/file", "/projects/books/hosts/shop.example",
	"/projects/books/hosts/shop.example?url=https://shop.example/private/x",
	"/projects/books/hosts/new.example?url=https://new.example/", "/brakes", "/audit", "/bot", "/login",
}

// TestPages checks every page for the structure that screen readers need and for what the
// Content-Security-Policy forbids.
func TestPages(t *testing.T) {
	d := newFakeDaemon()
	d.brakes = []api.Brake{{Host: "shop.example", Stop: true, Reason: "asked", By: "anna"}}
	b := openBrowser(t, d, operateToken)
	for _, path := range pagePaths {
		a := b.get(path)
		if a.status != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: status %d, %s", path, a.status, a.text)
			continue
		}
		doc := a.document(t)
		if n := len(elements(doc, "h1")); n != 1 {
			t.Errorf("%s: %d headings of the first level", path, n)
		}
		if len(elements(doc, "main")) != 1 || attr(elements(doc, "html")[0], "lang") != "en" {
			t.Errorf("%s: a landmark, or the language, is missing", path)
		}
		checkNodes(t, b, path, doc)
	}
}

// checkNodes checks every element of a page, and the assets that it loads.
func checkNodes(t *testing.T, b *browser, path string, doc *html.Node) {
	ids := map[string]bool{}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "style", strings.HasPrefix(a.Key, "on"):
				t.Errorf("%s: <%s %s=%q>: the policy forbids it", path, n.Data, a.Key, a.Val)
			case a.Key == "id" && ids[a.Val]:
				t.Errorf("%s: two elements are %q", path, a.Val)
			case a.Key == "id":
				ids[a.Val] = true
			}
		}
		switch n.Data {
		case "script":
			if n.FirstChild != nil || !strings.HasPrefix(attr(n, "src"), "/assets/") {
				t.Errorf("%s: a script that is not an asset", path)
			}
			checkAsset(t, b, attr(n, "src"), "text/javascript")
		case "link":
			checkAsset(t, b, attr(n, "href"),
				map[string]string{"icon": "image/svg+xml", "stylesheet": "text/css"}[attr(n, "rel")])
		case "input", "select", "textarea":
			if attr(n, "type") != "hidden" && attr(n, "aria-label") == "" && !hasLabel(n) {
				t.Errorf("%s: the field %q has no label", path, attr(n, "name"))
			}
		case "th":
			if attr(n, "scope") == "" {
				t.Errorf("%s: the head %q of a table has no scope", path, textOf(n))
			}
		case "table":
			if len(elements(n, "th")) == 0 {
				t.Errorf("%s: a table without heads", path)
			}
		}
	}
}

func checkAsset(t *testing.T, b *browser, path, mediaType string) {
	t.Helper()
	if b.checked[path] {
		return
	}
	b.checked[path] = true
	a := b.get(path)
	if a.status != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), mediaType) ||
		!strings.Contains(a.header.Get("Cache-Control"), "immutable") {
		t.Errorf("%s: status %d, %v", path, a.status, a.header)
	}
}

func hasLabel(n *html.Node) bool {
	for p := range n.Ancestors() {
		if p.Data == "label" && textOf(p) != "" {
			return true
		}
	}
	return false
}

// TestUntrustedText puts hostile text into every value that strangers write, and checks that pages
// show it only as text.
func TestUntrustedText(t *testing.T) {
	for _, hostile := range []string{
		`<script src="https://evil.example/x.js"></script>`, `"><img src=x onerror=alert(1)>`,
		`' autofocus onfocus='alert(1)`,
		"javascript:alert(1)", "</textarea></pre></code><svg onload=alert(1)>", "{{.}}<!--", "a\u202Egpj.exe\u2066",
		"nul\x00esc\x1b[2Jbad\xff\xc0utf",
	} {
		d := newFakeDaemon()
		d.reason, d.host, d.robots = hostile, "shop.example", hostile+"\nUser-agent: *\nDisallow: /"+hostile
		d.project.StateReason, d.project.FileError, d.project.UserAgent = hostile, hostile, hostile
		d.brakes = []api.Brake{{Host: hostile, Reason: hostile, By: hostile}}
		b := openBrowser(t, d, operateToken)
		for _, path := range pagePaths {
			a := b.get(path)
			checkNodes(t, b, path, a.document(t))
			for _, link := range elements(a.document(t), "a") {
				if strings.HasPrefix(attr(link, "href"), "javascript:") {
					t.Errorf("%s: a link to a script: %q", path, attr(link, "href"))
				}
			}
			for _, name := range []string{"img", "iframe", "object"} {
				if len(elements(a.document(t), name)) > 0 {
					t.Errorf("%s: %q became an element %s", path, hostile, name)
				}
			}
			if i := strings.IndexFunc(a.text, isDeceptive); i >= 0 {
				t.Errorf("%s: %q may deceive the eye", path, a.text[max(0, i-20):i+4])
			}
		}
	}
}

func isDeceptive(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// The links to a host lead to its page, whatever characters its name has.
func TestHostNames(t *testing.T) {
	for _, name := range []string{"shop.example", "[2001:db8::1]", "xn--bcher-kva.example",
		"a_b.example", "127.0.0.1"} {
		d := newFakeDaemon()
		d.host = name
		b := openBrowser(t, d, readToken)
		row := elements(b.get("/projects/books").document(t), "tbody")[0]
		if a := b.get(attr(elements(row, "a")[0], "href")); a.status != http.StatusOK ||
			textOf(elements(a.document(t), "h1")[0]) != name {
			t.Errorf("%s: status %d, %s", name, a.status, a.path)
		}
		a := b.get("/projects/books/explain?url=http://" + name + "/x?y=1%26z")
		if a.status != http.StatusOK || !strings.Contains(a.text, "allowed by robots.txt") {
			t.Errorf("%s: its URL is not explained: status %d, %s", name, a.status, a.path)
		}
	}
}

// A missing page is answered with 404, and an invalid URL to explain with 422.
func TestProblems(t *testing.T) {
	b := openBrowser(t, newFakeDaemon(), operateToken)
	for path, want := range map[string]int{
		"/nothing": 404, "/projects/none": 404, "/projects/books/hosts/none.example": 404, "/assets/page.css": 404,
		"/projects/books/explain?url=": 422, "/projects/books/explain?url=mailto:a@b": 422,
	} {
		if a := b.get(path); a.status != want {
			t.Errorf("%s: status %d, want %d", path, a.status, want)
		}
	}
}

// A caller with the role read sees no form that changes something, and no project file.
func TestReaders(t *testing.T) {
	d := newFakeDaemon()
	d.brakes = []api.Brake{{Host: "shop.example", Stop: true}}
	b := openBrowser(t, d, readToken)
	for _, path := range pagePaths {
		a := b.get(path)
		if path == "/projects/books/file" {
			if a.status != http.StatusForbidden {
				t.Errorf("%s: status %d", path, a.status)
			}
			continue
		}
		for _, form := range elements(a.document(t), "form") {
			if action := attr(form, "action"); attr(form, "method") == "post" &&
				action != "/logout" && action != "/login" {
				t.Errorf("%s: a form for %q", path, action)
			}
		}
	}
	if a := b.post("/projects/books/stop", nil); a.status != http.StatusForbidden || len(d.calls) > 0 {
		t.Errorf("a caller with the role read made the calls %q: status %d", d.calls, a.status)
	}
}

// A caller without a session sees the public pages, and is redirected to the login from all others.
func TestPagesWithoutLogin(t *testing.T) {
	b := openBrowser(t, newFakeDaemon(), "")
	for _, path := range pagePaths {
		a := b.get(path)
		if path == "/bot" || path == "/login" {
			if a.status != http.StatusOK || a.path != path || strings.Contains(a.text, "Log out") {
				t.Errorf("%s: status %d at %s", path, a.status, a.path)
			}
			continue
		}
		if a.status != http.StatusOK || !strings.HasPrefix(a.path, "/login?") {
			t.Errorf("%s: status %d at %s", path, a.status, a.path)
		}
	}
	a := b.post("/login", map[string][]string{"token": {"wrong"}, "next": {"/brakes"}})
	if !strings.Contains(a.text, "not valid for this daemon") || !strings.Contains(a.text, `value="/brakes"`) {
		t.Errorf("a wrong token: %s", a.text)
	}
	if a := b.post("/login", map[string][]string{"token": {operateToken}, "next": {"/brakes"}}); a.path != "/brakes" {
		t.Errorf("the login led to %s", a.path)
	}
}
