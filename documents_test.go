package decorum_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	documentBlockStart = regexp.MustCompile(`^(\||#|[-*] |\d+\. )`)
	documentFence      = regexp.MustCompile("(?ms)^```.*?^```$")
	documentedPath     = regexp.MustCompile("`([\\w.*-]+(?:/[\\w.*-]+)*/?)`(?: \\(((?:`[\\w.]+`(?:, )?)+)\\))?")
	documentedName     = regexp.MustCompile("`([\\w.]+)`")
)

// TestDocumentedPaths: each path of the repository that a document names in backquotes exists, and the
// file declares the functions and types that follow its path in parentheses. A file of Go without a
// directory is in the root, or in the directory of the path before it in the same paragraph, item or row.
func TestDocumentedPaths(t *testing.T) {
	files, err := filepath.Glob("docs/*.md")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d documents, %v", len(files), err)
	}
	paths, names := 0, 0
	for _, file := range append(files, "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "deploy/README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range documentBlocks(string(text)) {
			dir := "." // of the path before
			for _, m := range documentedPath.FindAllStringSubmatch(block, -1) {
				if !isRepositoryPath(m[1], file) {
					continue
				}
				found, ok := findDocumentedPath(m[1], dir)
				if !ok {
					t.Errorf("%s: %s does not exist", file, m[1])
					continue
				}
				paths++
				if dir = found; path.Ext(found) != "" {
					dir = path.Dir(found)
				}
				for _, name := range documentedName.FindAllStringSubmatch(m[2], -1) {
					if names++; !declaredIn(t, found)[name[1]] {
						t.Errorf("%s: %s does not declare %s", file, found, name[1])
					}
				}
			}
		}
	}
	if paths < 400 || names < 70 {
		t.Errorf("%d paths and %d names were checked: the pattern misses the rest", paths, names)
	}
}

// documentBlocks returns the paragraphs, the items of lists and the rows of tables of a document, each on
// one line, without what is in fences.
func documentBlocks(text string) []string {
	var blocks []string
	isNew := true
	for line := range strings.Lines(documentFence.ReplaceAllString(text, "")) {
		line = strings.TrimSpace(line)
		if isNew = isNew || line == "" || documentBlockStart.MatchString(line); isNew {
			blocks = append(blocks, "")
		}
		blocks[len(blocks)-1] += line + " "
		isNew = line == ""
	}
	return blocks
}

// isRepositoryPath reports whether a text in backquotes is a path of the repository: it begins with one
// of its directories, or it is a file of Go that a document for contributors names.
func isRepositoryPath(text, document string) bool {
	first, _, isNested := strings.Cut(text, "/")
	if isNested {
		info, err := os.Stat(first)
		return err == nil && info.IsDir() && first != ".."
	}
	return path.Ext(text) == ".go" && (document == "ARCHITECTURE.md" || document == "CONTRIBUTING.md")
}

// findDocumentedPath returns the path from the root of what a document names; name may be a pattern.
func findDocumentedPath(name, dir string) (found string, ok bool) {
	for _, candidate := range []string{name, path.Join(dir, name)} {
		if all, err := filepath.Glob(candidate); err == nil && len(all) > 0 {
			return filepath.ToSlash(all[0]), true
		}
	}
	return "", false
}

// declaredIn returns the functions, types, constants and variables of a file; methods as Type.Method.
func declaredIn(t *testing.T, file string) map[string]bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[receiverPrefix(d)+d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names[n.Name] = true
					}
				}
			}
		}
	}
	return names
}

// receiverPrefix returns "Type." for a method, and "" for a function.
func receiverPrefix(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	receiver := f.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}
