package decorum_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	requirementID = regexp.MustCompile(
		`\b(?:C|DEF|LOC|FETCH|CACHE|FMT|SYN|GRP|AGENT|MATCH|PREC|SMAP|HOST|DELAY|CLEAN|SESS|EXC|SYS|COMPAT|LINT|SAMPLE|INT|Q)-\d{2}\b`)
	requirementRow = regexp.MustCompile(`(?m)^\| ([A-Z]+-\d{2}) \|`)
)

// Every requirement of robots.txt that code, tests, examples or documents cite has a row in
// docs/robots-requirements.md.
func TestCitedRequirementsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("docs/robots-requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	isDocumented := map[string]bool{}
	for _, m := range requirementRow.FindAllStringSubmatch(string(page), -1) {
		isDocumented[m[1]] = true
	}
	citing := map[string]string{}
	for _, f := range readSourceFiles(t) {
		citing[f.name] = f.text
	}
	for _, name := range []string{"robots/testdata/requirements.txt",
		"docs/robots-requirements.md", "docs/site-owners.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		citing[name] = string(text)
	}
	cited := 0
	for name, text := range citing {
		for _, id := range requirementID.FindAllString(text, -1) {
			cited++
			if !isDocumented[id] && !strings.HasSuffix(name, "requirements_page_test.go") {
				t.Errorf("%s cites %s, which docs/robots-requirements.md lacks", name, id)
			}
		}
	}
	if len(isDocumented) < 300 || cited < 400 {
		t.Errorf("%d requirements are documented, and %d citations were found", len(isDocumented), cited)
	}
}
