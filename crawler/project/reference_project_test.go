package project

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/internal/doctest"
	"github.com/decorum-crawler/decorum/internal/yamllimit"
)

// TestProjectFileReference: docs/project-file.md agrees with the comments on the fields of Project
// and with their defaults.
func TestProjectFileReference(t *testing.T) {
	doctest.CheckGenerated(t, "project-file.md", "crawler/project", "TestProjectFileReference",
		func(w *bytes.Buffer) { writeProjectFile(t, w) })
}

// writeProjectFile writes the reference of the project file: for each field, its comment and
// default.
func writeProjectFile(t *testing.T, w *bytes.Buffer) {
	w.WriteString("# The project file\n\n" + doctest.Notice("crawler/project", "TestProjectFileReference") +
		`A project file describes one crawl in YAML. Fields that are left out have their defaults. Unknown
fields, wrong types and invalid values are refused with file, line and column. Durations are written
as ` + "`500ms`, `1s`, `24h` or `30d`" + `, sizes as ` + "`512KiB`, `10MiB`" + ` or ` + "`1GiB`" + `.
A flag of ` + "`decorum crawl`" + ` that is named here overrides its field. ` + "`decorum init`" + ` writes a first file,
` + "`decorum check`" + ` finds mistakes, and ` + "`decorum check --schema`" + ` prints a JSON Schema for editors.

Relative paths mean the same in ` + "`decorum crawl` and `decorum serve`" + `: files that the crawl reads are
relative to the directory of the project file, and what it writes to the data directory of the crawl
(` + "`--data`, or `projects/NAME/`" + ` in that of a daemon). Paths in flags are relative to the working directory.
Earlier versions of ` + "`decorum crawl`" + ` looked in the working directory for all of them: a file that is still
there is an error, which names both places.

` + fmt.Sprintf(`A file has at most %d KiB, %d values and marks of punctuation, %d keys, %d keys in one
mapping, and %d levels of lists and mappings; a key or value has at most %d KiB, and the keys that
lead to a value %d bytes together. Anchors, aliases and tags are refused. These limits are checked
before the file is parsed. They are constants, and apply also to the project in an export and to
token files. Longer lists of seeds belong in `+"`seed_files`"+`.

`+"`scope.include`"+` and `+"`scope.exclude`"+` have at most %d patterns together, of %d KiB each, and
their compiled programs have at most %d MiB: a repetition such as `+"`x{1000}`"+` counts a thousand times.
`, MaxFileSize>>10, yamllimit.MaxTokens, yamllimit.MaxKeys, yamllimit.MaxEntries, yamllimit.MaxNesting, yamllimit.MaxScalarBytes>>10, yamllimit.MaxPathBytes, maxPatterns, maxPatternLength>>10, maxProgramsSize>>20))
	newFieldWriter(t, w).writeStruct(t, "", reflect.ValueOf(Default()))
}

// A fieldWriter writes the fields of structs.
type fieldWriter struct {
	w     *bytes.Buffer
	types map[string]doctest.TypeDoc // by name of the struct
	flags map[string]string          // by path of the field, such as --delay

	pathBases map[string]string // by path of the field: to what its file paths are relative
}

// pathBaseDocs says to what a relative path is relative.
var pathBaseDocs = map[FilePathUse]string{
	StateDirectory: "; relative to the working directory",
	InputFile:      "; relative to the directory of the project file",
	OutputPath:     "; relative to the data directory of the crawl",
}

// newFieldWriter returns a fieldWriter that writes to w.
func newFieldWriter(t *testing.T, w *bytes.Buffer) *fieldWriter {
	f := &fieldWriter{w: w, types: doctest.ReadTypes(t), flags: map[string]string{}, pathBases: map[string]string{}}
	for _, p := range projectFieldFlags {
		f.flags[p.fieldPath] = "--" + p.flagName
	}
	for _, field := range filePathFields {
		f.pathBases[field.name] = pathBaseDocs[field.Use]
	}
	return f
}

// structDoc returns the comment of struct t.
func (f *fieldWriter) structDoc(t reflect.Type) string {
	return regexp.MustCompile(`^(An? )?`+t.Name()+`\b`).ReplaceAllString(f.types[t.Name()].Doc, "This")
}

// describe returns the comment of a field of struct t, and to what its paths are relative. It returns ""
// for a field without a comment.
func (f *fieldWriter) describe(t reflect.Type, field reflect.StructField, path string) string {
	doc := f.types[t.Name()].Fields[field.Name]
	if doc == "" {
		return ""
	}
	return regexp.MustCompile(`\b`+field.Name+`\b (is|are|says)`).ReplaceAllString(doc,
		"`"+yamlFieldName(field)+"` $1") + f.pathBases[path]
}

// flagNote names the flag of the field at path, if it has one, after the text doc.
func (f *fieldWriter) flagNote(doc, path string) string {
	if flag := f.flags[path]; flag != "" {
		return doc + " (`" + flag + "`)"
	}
	return doc
}

// writeStruct writes the fields of one struct as a table, and then the tables of the structs in it.
func (f *fieldWriter) writeStruct(t *testing.T, path string, v reflect.Value) {
	if path != "" {
		fmt.Fprintf(f.w, "\n## %s\n\n%s\n", path, f.structDoc(v.Type()))
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
		fieldDoc := f.describe(v.Type(), field, name)
		if inner, innerPath := structOf(v.Field(i), name); inner.IsValid() {
			nested = append(nested, nestedStruct{innerPath, inner})
			fieldDoc = strings.TrimSpace(fieldDoc + " See [" + innerPath + "](#" +
				doctest.HeadingAnchor(innerPath) + ").")
		}
		if fieldDoc == "" {
			t.Errorf("the field %s of %s has no comment", field.Name, v.Type())
		}
		fieldDoc = f.flagNote(fieldDoc, name)
		fmt.Fprintf(f.w, "| `%s` | %s | %s | %s |\n", yamlFieldName(field), valueKind(field.Type),
			defaultOf(v.Field(i)), strings.ReplaceAll(fieldDoc, "|", "\\|"))
	}
	for _, r := range nested {
		f.writeStruct(t, r.path, r.v)
	}
}

// structOf returns the struct of a field, or of an entry of its map, and its path. It returns an
// invalid value if the field is a single value or a list.
func structOf(v reflect.Value, path string) (reflect.Value, string) {
	if v.Kind() == reflect.Map && v.Type().Elem().Kind() == reflect.Struct {
		return reflect.Zero(v.Type().Elem()), path + ".NAME"
	}
	if v.Kind() == reflect.Pointer && doctest.IsFieldStruct(v.Type().Elem()) {
		return reflect.Value{}, "" // described at the field for all hosts
	}
	if doctest.IsFieldStruct(v.Type()) {
		return v, path
	}
	return reflect.Value{}, ""
}

// valueKind describes the values of a field.
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

// defaultOf formats the default of a field, or returns "" if it is empty.
func defaultOf(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Slice && v.Len() > 0:
		return "`" + strings.ReplaceAll(fmt.Sprint(v.Interface()), " ", ", ") + "`"
	case v.Kind() == reflect.Pointer, v.Kind() == reflect.Slice, v.Kind() == reflect.Map,
		doctest.IsFieldStruct(v.Type()):
		return ""
	case v.IsZero() && v.Kind() != reflect.Bool && v.Kind() != reflect.Int &&
		v.Kind() != reflect.Float64 && v.Kind() != reflect.Int64:
		return ""
	}
	return "`" + fmt.Sprint(v.Interface()) + "`"
}
