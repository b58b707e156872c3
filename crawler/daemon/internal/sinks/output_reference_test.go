package sinks

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/internal/doctest"
)

// TestOutputReference: docs/output.md is what the code says of the fields of a line of output.
func TestOutputReference(t *testing.T) {
	doctest.CheckGenerated(t, "output.md", "crawler/daemon/internal/sinks", "TestOutputReference", func(w *bytes.Buffer) { writeOutput(t, w) })
}

// writeOutput writes the fields of a line of output.
func writeOutput(t *testing.T, w *bytes.Buffer) {
	w.WriteString("# Lines of output\n\n" + doctest.Notice("crawler/daemon/internal/sinks", "TestOutputReference") + `One visit to a page is one line of JSON. Every line has every field but those that are
marked as left out; what is not known is empty, 0 or null.

| field | |
|---|---|
`)
	writeLine(t, w, doctest.ReadTypes(t), "", reflect.TypeFor[OutputRecord]())
}

func writeLine(t *testing.T, w *bytes.Buffer, types map[string]doctest.TypeDoc, path string, v reflect.Type) {
	for field := range v.Fields() {
		name, more, _ := strings.Cut(field.Tag.Get("json"), ",")
		doc := types[v.Name()].Fields[field.Name]
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
		if inner.PkgPath() == v.PkgPath() && doctest.IsFieldStruct(inner) {
			writeLine(t, w, types, path+name+".", inner)
		}
	}
}
