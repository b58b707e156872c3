package crawler_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPipelineWalk: the functions that ARCHITECTURE.md names on the way from lease to ack are in
// the files that it names, which are eight at most.
func TestPipelineWalk(t *testing.T) {
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "### From lease to ack\n")
	section, _, _ = strings.Cut(section, "\n## ")
	row := regexp.MustCompile("(?m)^\\| [^|]+ \\| `(crawler/\\w+\\.go)` \\| (`[^|]+`) \\|$")
	rows := row.FindAllStringSubmatch(section, -1)
	if len(rows) < 10 {
		t.Fatalf("%d steps were found", len(rows))
	}
	functionsByFile := map[string][]string{}
	for _, r := range rows {
		file := r[1]
		if functionsByFile[file] == nil {
			functionsByFile[file] = declaredFunctions(t, filepath.Base(file))
		}
		for name := range strings.SplitSeq(r[2], ", ") {
			if name = strings.Trim(name, "`"); !slices.Contains(functionsByFile[file], name) {
				t.Errorf("%s is not in %s", name, file)
			}
		}
	}
	if len(functionsByFile) > 8 {
		t.Errorf("the walk passes %d files", len(functionsByFile))
	}
}

// declaredFunctions returns the functions of a file; methods as "Type.method".
func declaredFunctions(t *testing.T, file string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			receiver := f.Recv.List[0].Type
			if pointer, ok := receiver.(*ast.StarExpr); ok {
				receiver = pointer.X
			}
			name = receiver.(*ast.Ident).Name + "." + name
		}
		names = append(names, name)
	}
	return names
}
