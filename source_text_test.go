package decorum_test

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxLineColumns is how wide a line of Go may be. A tab counts as 4 columns.
const maxLineColumns = 120

// Lines of Go have at most maxLineColumns columns. Lines of raw strings, and comments that a URL or a table
// makes longer, may be wider.
func TestLinesFitIntoTheirColumns(t *testing.T) {
	for _, f := range readSourceFiles(t) {
		rawLines := rawStringLines(f.text)
		for i, line := range strings.Split(f.text, "\n") {
			columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			isExempt := rawLines[i+1] || strings.Contains(line, "://") ||
				strings.HasPrefix(strings.TrimSpace(line), "//\t")
			if columns > maxLineColumns && !isExempt {
				t.Errorf("%s:%d: %d columns; at most %d", f.name, i+1, columns, maxLineColumns)
			}
		}
	}
}

// generatedNotice matches the notice of a document that a test writes.
var generatedNotice = regexp.MustCompile(`(?m)^<!-- .* -update -->$`)

// Lines of documents have at most maxLineColumns columns, outside of tables and code. URLs and generated
// documents may be wider.
func TestDocumentLinesFitIntoTheirColumns(t *testing.T) {
	for _, pattern := range []string{"*.md", "docs/*.md", "deploy/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if generatedNotice.Match(text) {
				continue
			}
			inCode := false
			for i, line := range strings.Split(string(text), "\n") {
				if strings.HasPrefix(strings.TrimSpace(line), "```") {
					inCode = !inCode
				}
				isExempt := inCode || strings.HasPrefix(line, "|") || strings.Contains(line, "://")
				if columns := utf8.RuneCountInString(line); columns > maxLineColumns && !isExempt {
					t.Errorf("%s:%d: %d columns; at most %d", name, i+1, columns, maxLineColumns)
				}
			}
		}
	}
}

// rawStringLines returns the numbers of the lines that a raw string begins on, ends on or fills.
func rawStringLines(text string) map[int]bool {
	lines := map[int]bool{}
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, 0)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.STRING && literal[0] == '`' {
			first := file.Line(pos)
			for n := range strings.Count(literal, "\n") + 1 {
				lines[first+n] = true
			}
		}
	}
}

// Every package has its documentation, and in one file: doc.go, where the package has more files than one.
func TestPackagesAreDocumented(t *testing.T) {
	documented, fileCounts := map[string][]string{}, map[string]int{}
	for _, f := range readSourceFiles(t) {
		if strings.HasSuffix(f.name, "_test.go") {
			continue
		}
		dir := path.Dir(f.name)
		fileCounts[dir]++
		if f.ast.Doc == nil {
			continue
		}
		documented[dir] = append(documented[dir], path.Base(f.name))
		wantStart := "Package " + f.ast.Name.Name + " "
		if name := f.ast.Name.Name; name == "main" {
			name = path.Base(dir)
			wantStart = strings.ToUpper(name[:1]) + name[1:] + " "
		}
		if got := f.ast.Doc.Text(); !strings.HasPrefix(got, wantStart) && !strings.HasPrefix(got, "Command ") {
			t.Errorf("%s: the package documentation begins with %.40q, want %q", f.name, got, wantStart)
		}
	}
	for dir, count := range fileCounts {
		switch names := documented[dir]; {
		case len(names) != 1:
			t.Errorf("%s: package documentation is in %q, want one file", dir, names)
		case count > 1 && names[0] != "doc.go" && names[0] != "main.go":
			t.Errorf("%s: package documentation is in %s, want doc.go", dir, names[0])
		}
	}
}

// guardedNames matches what a comment says that a lock guards: "guards addrs and listedAt".
var guardedNames = regexp.MustCompile(`\bguards ((?:\w+(?:, and |, | and ))*\w+)`)

// A comment at each lock says which fields beside it the lock guards, or for which of them it serializes
// work. The names are those of fields: a renamed field would leave the comment behind.
func TestLocksNameTheFieldsThatTheyGuard(t *testing.T) {
	locks := 0
	for _, f := range readSourceFiles(t) {
		if strings.HasSuffix(f.name, "_test.go") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			s, ok := n.(*ast.StructType)
			if !ok || len(s.Fields.List) == 1 { // a lock alone says what it is for where it is declared
				return true
			}
			for _, field := range s.Fields.List {
				if !isLockType(field.Type) {
					continue
				}
				locks++
				if problem := lockCommentProblem(field, s); problem != "" {
					t.Errorf("%s: the comment of this lock %s", f.fset.Position(field.Pos()), problem)
				}
			}
			return true
		})
	}
	if locks < 60 {
		t.Errorf("%d locks were found, want all", locks)
	}
}

// isLockType reports whether a field is a sync.Mutex or sync.RWMutex.
func isLockType(typ ast.Expr) bool {
	s, ok := typ.(*ast.SelectorExpr)
	return ok && (s.Sel.Name == "Mutex" || s.Sel.Name == "RWMutex")
}

// lockCommentProblem returns what is wrong with the comment of a lock in struct s; empty: nothing.
func lockCommentProblem(lock *ast.Field, s *ast.StructType) string {
	isField := map[string]bool{}
	for _, field := range s.Fields.List {
		for _, name := range field.Names {
			isField[name.Name] = field != lock
		}
		if typ, ok := field.Type.(*ast.StarExpr); ok && len(field.Names) == 0 {
			field = &ast.Field{Type: typ.X}
		}
		if name, ok := field.Type.(*ast.SelectorExpr); ok && len(field.Names) == 0 { // embedded
			isField[name.Sel.Name] = true
		}
	}
	comment := lock.Doc.Text() + " " + lock.Comment.Text()
	for _, m := range guardedNames.FindAllStringSubmatch(comment, -1) {
		for _, name := range regexp.MustCompile(`\w+`).FindAllString(m[1], -1) {
			switch name {
			case "and", "the", "all", "everything", "each", "every", "serializes",
				"serialises", "orders", "stores", "is":
			default:
				if !isField[name] {
					return "says that it guards " + name + ", which is not a field of the struct"
				}
			}
		}
	}
	for _, word := range regexp.MustCompile(`\w+`).FindAllString(comment, -1) {
		if isField[word] || word == "all" || word == "everything" {
			return ""
		}
	}
	return "names none of the fields that it guards: " + strings.TrimSpace(comment)
}
