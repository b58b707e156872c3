package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/doctest"
)

// markdownDocs returns the Markdown documents of the repository by their path from its root.
func markdownDocs(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "deploy/*.md"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[strings.TrimPrefix(filepath.ToSlash(file), "../../../../")] = string(text)
		}
	}
	if texts["README.md"] == "" || texts["docs/project-file.md"] == "" {
		t.Fatal("README.md or docs/project-file.md was not found")
	}
	return texts
}

var codeBlockPattern = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// codeBlocks returns the fenced code blocks of a page in the given language.
func codeBlocks(page, language string) []string {
	var texts []string
	for _, m := range codeBlockPattern.FindAllStringSubmatch(page, -1) {
		if m[1] == language {
			texts = append(texts, m[2])
		}
	}
	return texts
}

// TestDocumentedFields checks that the YAML blocks of the documents are valid project files.
func TestDocumentedFields(t *testing.T) {
	read := 0
	for name, page := range markdownDocs(t) {
		for _, block := range codeBlocks(page, "yaml") {
			if strings.HasPrefix(block, "scrape_configs:") || strings.HasPrefix(block, "- ") {
				continue // configuration of Prometheus, or a file for --tokens
			}
			if _, err := project.ParseFile(name, []byte(block)); err != nil {
				t.Errorf("%v in\n%s", err, block)
			}
			read++
		}
	}
	if read < 6 {
		t.Errorf("%d blocks were read: where are the others?", read)
	}
}

// TestDocumentedCode checks that the Go code in the documents also is, line by line, in a Go file of
// the repository, which is compiled or run as an example.
func TestDocumentedCode(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	err := filepath.WalkDir(filepath.Join("..", "..", "..", ".."), func(name string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" {
			return err
		}
		text, err := os.ReadFile(name)
		code.WriteString(unindented(string(text)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for name, page := range markdownDocs(t) {
		for _, block := range codeBlocks(page, "go") {
			if !strings.Contains(code.String(), unindented(block)) {
				t.Errorf("%s has code that is in no Go file:\n%s", name, block)
			}
			read++
		}
	}
	if read < 7 {
		t.Errorf("%d blocks were read: where are the others?", read)
	}
}

var leadingTabs = regexp.MustCompile(`(?m)^\t+`)

func unindented(code string) string { return leadingTabs.ReplaceAllString(code, "") }

var decorumCommandLine = regexp.MustCompile(`(?m)^(?:sudo |curl .* \| |go run \./cmd/)?decorum ((?:[^\\\n]|\\\n)*)`)

// TestDocumentedCommands checks that the commands and flags in the documents exist.
func TestDocumentedCommands(t *testing.T) {
	read := 0
	for name, page := range markdownDocs(t) {
		for _, block := range codeBlocks(page, "sh") {
			for _, m := range decorumCommandLine.FindAllStringSubmatch(block, -1) {
				line := shellWords(m[1])
				c, rest, err := (&program{}).newRootCommand().Find(line)
				if err == nil {
					err = c.ParseFlags(rest)
				}
				if err != nil {
					t.Errorf("%s: decorum %s: %v", name, strings.Join(line, " "), err)
				}
				read++
			}
		}
	}
	if read < 30 {
		t.Errorf("%d commands were read: where are the others?", read)
	}
}

var shellWord = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)

// shellWords returns the words of a shell command line, up to a comment or the next command.
func shellWords(line string) []string {
	var all []string
	for _, w := range shellWord.FindAllString(strings.ReplaceAll(line, "\\\n", " "), -1) {
		if strings.ContainsAny(w[:1], "#|><&;") {
			break
		}
		all = append(all, strings.Trim(w, `'"`))
	}
	return all
}

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestDocumentedLinks checks that the files and headings to which the documents link exist.
func TestDocumentedLinks(t *testing.T) {
	texts := markdownDocs(t)
	for name, page := range texts {
		for _, m := range markdownLink.FindAllStringSubmatch(page, -1) {
			to, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, ":") {
				continue // a link to another site
			}
			target := name
			if to != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(name), to))
			}
			if _, err := os.Stat(filepath.Join("..", "..", "..", "..", target)); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			} else if heading != "" && !headingAnchors(texts[target])[heading] {
				t.Errorf("%s links to %s: there is no such heading", name, m[1])
			}
		}
	}
}

var (
	linkLabelUse        = regexp.MustCompile(`\]\[([a-z0-9-]+)\]`)
	linkLabelDefinition = regexp.MustCompile(`(?m)^\[([a-z0-9-]+)\]: https://`)
)

// TestDocumentedLabels checks that each link by a label has exactly one definition of that label in
// its page, and that no definition is unused.
func TestDocumentedLabels(t *testing.T) {
	read := 0
	for name, page := range markdownDocs(t) {
		page = codeBlockPattern.ReplaceAllString(page, "")
		used, defined := map[string]bool{}, map[string]bool{}
		for _, m := range linkLabelUse.FindAllStringSubmatch(page, -1) {
			used[m[1]] = true
		}
		for _, m := range linkLabelDefinition.FindAllStringSubmatch(page, -1) {
			if defined[m[1]] || !used[m[1]] {
				t.Errorf("%s: the label %s is there twice, or leads from nowhere", name, m[1])
			}
			defined[m[1]] = true
			read++
		}
		for l := range used {
			if !defined[l] {
				t.Errorf("%s: there is no label %s", name, l)
			}
		}
	}
	if read < 30 {
		t.Errorf("%d labels were read: where are the others?", read)
	}
}

var headingPattern = regexp.MustCompile(`(?m)^#+ (.*)$`)

// headingAnchors returns the anchors of the headings of a page.
func headingAnchors(page string) map[string]bool {
	anchors := map[string]bool{}
	for _, m := range headingPattern.FindAllStringSubmatch(codeBlockPattern.ReplaceAllString(page, ""), -1) {
		anchors[doctest.HeadingAnchor(m[1])] = true
	}
	return anchors
}
