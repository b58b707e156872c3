// Package doctest compares the reference documents, which tests generate from the code, with the
// code. Only tests import it. Begin with CheckGenerated.
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

// Update is the test flag -update, which writes golden files and reference documents again.
var Update = flag.Bool("update", false, "write golden files and reference documents again")

// Notice returns the first line of a generated document: it names the test that generates the
// document.
func Notice(pkg, test string) string {
	return "<!-- Generated from the code by: " + regenerateCommand(pkg, test) + " -->\n\n"
}

// regenerateCommand returns the command that generates a document again.
func regenerateCommand(pkg, test string) string {
	return "go test ./" + pkg + " -run " + test + " -update"
}

// CheckGenerated fails the test unless the document docs/name equals what write writes. With the
// flag -update it writes the document first. pkg is the path of the calling package, test the name
// of the calling test.
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
		t.Errorf("docs/%s differs from the code; regenerate it with: %s\n%s", name, regenerateCommand(pkg, test), diff)
	}
}

// A TypeDoc holds the comments of a struct and of its fields, by field name.
type TypeDoc struct {
	Doc    string
	Fields map[string]string
}

// ReadTypes returns the comments of all structs of the package in the working directory, by type
// name.
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
			// A type's comment belongs to its declaration: types in a group share one.
			for _, spec := range decl.Specs {
				if body, ok := spec.(*ast.TypeSpec).Type.(*ast.StructType); ok {
					types[spec.(*ast.TypeSpec).Name.Name] = TypeDoc{commentText(decl.Doc), fieldTexts(body)}
				}
			}
		}
	}
	return types
}

// fieldTexts returns the comments of the fields of body: the one on the field's line, or else the
// one above it.
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

// commentText returns the comment as one paragraph.
func commentText(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// IsFieldStruct reports whether values of t are written as several fields, rather than as one text.
func IsFieldStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// nonAnchorChars matches the characters of a heading that its anchor lacks.
var nonAnchorChars = regexp.MustCompile(`[^a-z0-9 _-]`)

// HeadingAnchor returns the anchor of a Markdown heading, in GitHub's form.
func HeadingAnchor(heading string) string {
	return strings.ReplaceAll(nonAnchorChars.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}
