package sinks

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/internal/doctest"
)

// docs/output.md lists the fields of a line of output with their comments in the code.
func TestOutputReference(t *testing.T) {
	doctest.CheckGenerated(t, "output.md", "crawler/daemon/internal/sinks", "TestOutputReference",
		func(w *bytes.Buffer) { writeOutput(t, w) })
}

// writeOutput writes the page about the lines of output.
func writeOutput(t *testing.T, w *bytes.Buffer) {
	w.WriteString("# Lines of output\n\n" + doctest.Notice("crawler/daemon/internal/sinks", "TestOutputReference") +
		`Each line is a JSON object that records one visit to a page. A line without the value of an
optional field lacks the field; every line has all other fields. An unknown value is empty,
0 or null.

| field | |
|---|---|
`)
	writeLine(t, w, doctest.ReadTypes(t), "", reflect.TypeFor[OutputRecord]())
}

// writeLine writes one row for each field of v, and of the structs in it.
func writeLine(t *testing.T, w *bytes.Buffer, types map[string]doctest.TypeDoc, path string, v reflect.Type) {
	for field := range v.Fields() {
		name, more, _ := strings.Cut(field.Tag.Get("json"), ",")
		doc := strings.TrimSuffix(types[v.Name()].Fields[field.Name], ".")
		if doc == "" {
			t.Errorf("the field %s of %s has no comment", field.Name, v)
		}
		if more == "omitempty" {
			doc += "; optional"
		}
		fmt.Fprintf(w, "| `%s` | %s |\n", path+name, strings.TrimPrefix(doc, field.Name+" is "))
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.PkgPath() == v.PkgPath() && doctest.IsFieldStruct(inner) {
			writeLine(t, w, types, path+name+".", inner)
		}
	}
}
