package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/robots"
)

// TestPageExplainsEachCode: docs/robots-lint.md has a section for each code of a finding and no other.
// The example in a section has a finding with the code.
func TestPageExplainsEachCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/robots-lint.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, text := range strings.Split(string(page), "\n## ")[1:] {
		code, rest, _ := strings.Cut(text, "\n")
		sections[code] = rest
	}
	codes := codesOfFindings(t)
	for code := range codes {
		if sections[code] == "" {
			t.Errorf("the page has no section %q", code)
		}
	}
	example := regexp.MustCompile("(?ms)^```text\n(.*?)^```")
	for code, text := range sections {
		if !codes[code] {
			t.Errorf("no finding has the code %q of a section", code)
		}
		m := example.FindStringSubmatch(text)
		if m == nil {
			if !slices.Contains([]string{"FMT-07", "FMT-13", "FMT-15", "LINT-06"}, code) {
				t.Errorf("%s has no example", code)
			}
			continue
		}
		found := Check([]byte(m[1]), robots.ParseOptions{})
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.Code == code }) {
			t.Errorf("the example of %s has only %+v", code, found)
		}
	}
	f := Finding{Code: "SYN-08"}
	if want := "https://github.com/decorum-crawler/decorum/blob/main/docs/robots-lint.md#syn-08"; f.URL() != want {
		t.Errorf("URL %s, want %s", f.URL(), want)
	}
}

// codesOfFindings returns the codes in the source of the package.
func codesOfFindings(t *testing.T) map[string]bool {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"([A-Z]+-\d\d)"`).FindAllStringSubmatch(string(text), -1) {
			codes[m[1]] = true
		}
	}
	if len(codes) < 30 {
		t.Fatalf("%d codes in the source: the pattern misses the rest", len(codes))
	}
	return codes
}

func TestParseSeverity(t *testing.T) {
	for _, s := range []Severity{Hint, Warning, Error} {
		if got, err := ParseSeverity(s.String()); err != nil || got != s {
			t.Errorf("ParseSeverity(%q) = %v, %v", s, got, err)
		}
	}
	if _, err := ParseSeverity("note"); err == nil {
		t.Error("another name is accepted")
	}
}
