package page

import (
	"bytes"
	"testing"

	"github.com/decorum-crawler/decorum/internal/doctest"
	"github.com/decorum-crawler/decorum/internal/escapedhtml"
)

// TestEscapedTemplates checks that the folder escaped, which the program contains, has the templates of
// the folder templates as html/template escapes them. With -update it writes them.
func TestEscapedTemplates(t *testing.T) {
	parts := map[string]string{} // in parts.html: what several pages call
	for _, page := range pageTemplateNames {
		source := sourceTemplates(loadAssets())
		texts, err := escapedhtml.Escape(source[page], "page")
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range texts {
			if name == "main" || source["problem"].Lookup(name) == nil {
				continue // the page's own
			}
			if known, ok := parts[name]; ok && known != text {
				t.Errorf("the part %s is escaped in two ways: define it in each page", name)
			}
			parts[name] = text
			delete(texts, name)
		}
		checkEscaped(t, page, texts)
	}
	checkEscaped(t, "parts", parts)
}

// checkEscaped checks a file of the folder escaped.
func checkEscaped(t *testing.T, name string, texts map[string]string) {
	t.Helper()
	doctest.CheckGenerated(t, "../crawler/daemon/page/escaped/"+name+".html", "crawler/daemon/page",
		"TestEscapedTemplates", func(w *bytes.Buffer) { w.WriteString(escapedhtml.FormatSource(texts)) })
}
