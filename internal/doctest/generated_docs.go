// Package doctest holds the reference documents, which tests write from the code, against
// the code. Only tests import it.
package doctest

import (
	"bytes"
	"encoding"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Update is the flag -update of tests: golden files are written again.
var Update = flag.Bool("update", false, "write golden files and reference documents again")

// Notice returns the line of a document that says which test of which package writes it.
func Notice(pkg, test string) string {
	return "<!-- Made of the code by: " + regenerateCommand(pkg, test) + " -->\n\n"
}

func regenerateCommand(pkg, test string) string {
	return "go test ./" + pkg + " -run " + test + " -update"
}

// CheckGenerated compares a document with what write writes for it, and writes the document with the
// flag -update. The document is in the folder docs; pkg and test are those of the caller.
func CheckGenerated(t *testing.T, name, pkg, test string, write func(*bytes.Buffer)) {
	t.Helper()
	var got bytes.Buffer
	write(&got)
	up := strings.Repeat("../", strings.Count(pkg, "/")+1)
	file := filepath.Join(filepath.FromSlash(up), "docs", name)
	if *Update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("docs/%s differs from the code; to write it again: %s\n%s", name, regenerateCommand(pkg, test), diff)
	}
}

// A TypeDoc is what the code says of a struct and of its fields.
type TypeDoc struct {
	Doc    string
	Fields map[string]string
}

// ReadTypes reads the comments of the structs of the package in the working directory.
func ReadTypes(t *testing.T) map[string]TypeDoc {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]TypeDoc{}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE || strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, spec := range decl.Specs {
				if body, ok := spec.(*ast.TypeSpec).Type.(*ast.StructType); ok {
					types[spec.(*ast.TypeSpec).Name.Name] = TypeDoc{commentText(decl.Doc), fieldTexts(body)}
				}
			}
		}
	}
	return types
}

func fieldTexts(body *ast.StructType) map[string]string {
	texts := map[string]string{}
	for _, f := range body.Fields.List {
		for _, name := range f.Names {
			if texts[name.Name] = commentText(f.Comment); f.Comment == nil {
				texts[name.Name] = commentText(f.Doc)
			}
		}
	}
	return texts
}

// commentText returns a comment as one paragraph.
func commentText(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// IsFieldStruct reports whether values of the type are fields, and no single value.
func IsFieldStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// nonAnchorChars matches the characters that a heading loses in its anchor.
var nonAnchorChars = regexp.MustCompile(`[^a-z0-9 _-]`)

// HeadingAnchor returns the anchor of a heading in Markdown, as GitHub forms it.
func HeadingAnchor(heading string) string {
	return strings.ReplaceAll(nonAnchorChars.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}
