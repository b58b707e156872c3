package daemon

import (
	"bytes"
	"encoding"
	"fmt"
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
	"github.com/spf13/cobra"
)

// TestReference: the reference in docs is what the code says of itself. With -update
// it is written anew.
func TestReference(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*testing.T, *bytes.Buffer){
		"commands.md": writeCommands, "project-file.md": writeProjectFile, "output.md": writeOutput,
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			write(t, &got)
			file := filepath.Join("..", "..", "docs", name)
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("docs/%s differs from the code; to write it anew: go test ./crawler/daemon -run TestReference -update\n%s", name, diff)
			}
		})
	}
}

const generatedNotice = "<!-- Made of the code by: go test ./crawler/daemon -run TestReference -update -->\n\n"

// writeCommands writes what --help says of every command.
func writeCommands(t *testing.T, w *bytes.Buffer) {
	root := (&program{}).rootCommand()
	w.WriteString("# Commands\n\n" + generatedNotice + `What ` + "`--help`" + ` says of each command. ` + "`decorum completion SHELL`" + ` prints the script
that completes them in bash, zsh, fish or PowerShell.

`)
	var all []*cobra.Command
	var collect func(*cobra.Command)
	collect = func(c *cobra.Command) {
		all = append(all, c)
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				collect(sub)
			}
		}
	}
	collect(root)
	for _, c := range all {
		fmt.Fprintf(w, "- [%s](#%s): %s\n", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"), c.Short)
	}
	w.WriteString("\n")
	for _, c := range all {
		writeCommand(w, c)
	}
}

func writeCommand(w *bytes.Buffer, c *cobra.Command) {
	fmt.Fprintf(w, "## %s\n\n", c.CommandPath())
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	for paragraph := range strings.SplitSeq(strings.TrimSpace(about), "\n\n") {
		if strings.Contains(paragraph, "\n  ") { // a table
			paragraph = "```text\n" + paragraph + "\n```"
		}
		w.WriteString(paragraph + "\n\n")
	}
	if c.Runnable() && c.HasParent() {
		fmt.Fprintf(w, "```text\n%s\n```\n\n", c.UseLine())
	}
	if c.Example != "" {
		fmt.Fprintf(w, "For example:\n\n```sh\n%s\n```\n\n", strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n"))
	}
	c.InitDefaultHelpFlag()
	if flags := c.NonInheritedFlags(); flags.HasAvailableFlags() {
		fmt.Fprintf(w, "```text\n%s```\n\n", flags.FlagUsages())
	}
}

// writeProjectFile writes the fields of the project file: what the comments of the
// fields say, and their defaults.
func writeProjectFile(t *testing.T, w *bytes.Buffer) {
	w.WriteString("# The project file\n\n" + generatedNotice + `A project file is YAML: what one crawl is to do. Fields that are left out have their
defaults. Unknown fields, wrong types and impossible values are refused with file, line
and column. Durations are written as ` + "`500ms`, `1s`, `24h` or `30d`" + `, sizes as ` + "`512KiB`, `10MiB`" + `
or ` + "`1GiB`" + `. A flag of ` + "`decorum crawl`" + ` that is named here wins over its field.

` + fmt.Sprintf(`A file has at most %d KiB, %d values and marks of punctuation, %d keys, %d of them in
one mapping, and %d levels of lists and mappings; a key or value has at most %d KiB, and the keys
that lead to a value %d bytes together. Anchors, aliases and tags are refused. Nothing is parsed
before these limits have been checked. They are constants, and hold for the project in an export
and for files of tokens, too. Lists of seeds that are longer belong in `+"`seed_files`"+`.

The patterns of `+"`scope.include`"+` and `+"`scope.exclude`"+` are at most %d together, of %d KiB each, and
their compiled programs have at most %d MiB: a repetition such as `+"`x{1000}`"+` counts a thousand times.
`, maxProjectFileSize>>10, maxYAMLTokens, maxYAMLKeys, maxYAMLEntries, maxYAMLNesting, maxYAMLScalarBytes>>10, maxYAMLPathBytes, maxPatterns, maxPatternLength>>10, maxProgramsSize>>20))
	defaults := DefaultProject()
	f := &fieldWriter{w: w, types: readTypes(t), flags: map[string]string{}}
	for _, p := range projectFieldFlags {
		f.flags[p.field] = "--" + p.flagName
	}
	f.writeStruct(t, "", reflect.ValueOf(defaults))
}

// writeOutput writes the fields of a line of output.
func writeOutput(t *testing.T, w *bytes.Buffer) {
	w.WriteString("# Lines of output\n\n" + generatedNotice + `One visit to a page is one line of JSON. Every line has every field but those that are
marked as left out; what is not known is empty, 0 or null.

| field | |
|---|---|
`)
	writeLine(t, w, readTypes(t), "", reflect.TypeFor[OutputRecord]())
}

func writeLine(t *testing.T, w *bytes.Buffer, types map[string]typeText, path string, v reflect.Type) {
	for field := range v.Fields() {
		name, more, _ := strings.Cut(field.Tag.Get("json"), ",")
		doc := types[v.Name()].fields[field.Name]
		if doc == "" {
			t.Errorf("the field %s of %s has no comment", field.Name, v)
		}
		if more == "omitempty" {
			doc = strings.TrimSuffix(doc, ".") + "; left out if there is none"
		}
		fmt.Fprintf(w, "| `%s` | %s |\n", path+name, strings.ReplaceAll(doc, field.Name+" is", "`"+name+"` is"))
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.PkgPath() == v.PkgPath() && isFieldStruct(inner) {
			writeLine(t, w, types, path+name+".", inner)
		}
	}
}

// A typeText is what the code says of a struct and of its fields.
type typeText struct {
	doc    string
	fields map[string]string
}

// readTypes reads the comments of this package's structs.
func readTypes(t *testing.T) map[string]typeText {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]typeText{}
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
					types[spec.(*ast.TypeSpec).Name.Name] = typeText{commentText(decl.Doc), fieldTexts(body)}
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

// A fieldWriter writes the fields of structs.
type fieldWriter struct {
	w     *bytes.Buffer
	types map[string]typeText
	flags map[string]string // by field
}

// writeStruct writes the fields of one struct as a table, and then the structs in it.
func (f *fieldWriter) writeStruct(t *testing.T, path string, v reflect.Value) {
	about := f.types[v.Type().Name()]
	if path != "" {
		doc := regexp.MustCompile(`^(An? )?`+v.Type().Name()+`\b`).ReplaceAllString(about.doc, "This")
		fmt.Fprintf(f.w, "\n## %s\n\n%s\n", path, doc)
	}
	f.w.WriteString("\n| field | value | default | |\n|---|---|---|---|\n")
	type nestedStruct struct {
		path string
		v    reflect.Value
	}
	var nested []nestedStruct
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name := strings.TrimPrefix(path+"."+yamlFieldName(field), ".")
		fieldDoc := about.fields[field.Name]
		if inner, innerPath := structOf(v.Field(i), name); inner.IsValid() {
			nested = append(nested, nestedStruct{innerPath, inner})
			fieldDoc = strings.TrimSpace(fieldDoc + " See [" + innerPath + "](#" + headingAnchor(innerPath) + ").")
		}
		if fieldDoc == "" {
			t.Errorf("the field %s of %s has no comment", field.Name, v.Type())
		}
		if flag := f.flags[name]; flag != "" {
			fieldDoc += " (`" + flag + "`)"
		}
		fieldDoc = regexp.MustCompile(`\b`+field.Name+`\b (is|are|says)`).ReplaceAllString(fieldDoc, "`"+yamlFieldName(field)+"` $1")
		fmt.Fprintf(f.w, "| `%s` | %s | %s | %s |\n", yamlFieldName(field), valueKind(field.Type), defaultOf(v.Field(i)), strings.ReplaceAll(fieldDoc, "|", "\\|"))
	}
	for _, r := range nested {
		f.writeStruct(t, r.path, r.v)
	}
}

// structOf returns the struct that a field holds, or one of those that it holds by
// name, and its path; an invalid value if the field is a single value or a list.
func structOf(v reflect.Value, path string) (reflect.Value, string) {
	if v.Kind() == reflect.Map && v.Type().Elem().Kind() == reflect.Struct {
		return reflect.Zero(v.Type().Elem()), path + ".NAME"
	}
	if v.Kind() == reflect.Pointer && isFieldStruct(v.Type().Elem()) {
		return reflect.Value{}, "" // described where it is the field of all
	}
	if isFieldStruct(v.Type()) {
		return v, path
	}
	return reflect.Value{}, ""
}

// isFieldStruct reports whether values of the type are fields, and no single value.
func isFieldStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// headingAnchor returns what a heading is linked by.
func headingAnchor(path string) string {
	return nonAnchorChars.ReplaceAllString(strings.ToLower(path), "")
}

// valueKind says what is written as the value of a field.
func valueKind(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[Duration]():
		return "duration"
	case reflect.TypeFor[Size]():
		return "size"
	case reflect.TypeFor[Date]():
		return "day"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true, false"
	case reflect.Int:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list"
	case reflect.Map:
		return "names, each with its value"
	case reflect.Struct:
		return "fields"
	}
	return "text"
}

// defaultOf writes a default.
func defaultOf(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Slice && v.Len() > 0:
		return "`" + strings.ReplaceAll(fmt.Sprint(v.Interface()), " ", ", ") + "`"
	case v.Kind() == reflect.Pointer, v.Kind() == reflect.Slice, v.Kind() == reflect.Map, isFieldStruct(v.Type()):
		return ""
	case v.IsZero() && v.Kind() != reflect.Bool && v.Kind() != reflect.Int && v.Kind() != reflect.Float64 && v.Kind() != reflect.Int64:
		return ""
	}
	return "`" + fmt.Sprint(v.Interface()) + "`"
}
