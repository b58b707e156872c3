package escapedhtml

import (
	"errors"
	"fmt"
	"html/template"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var templateCall = regexp.MustCompile(`\{\{template "([^"]+)"`)

// Escape returns the escaped text of a template and of the templates that it calls, by name. It is for
// tests that write these texts to files: a program that calls Escape contains text/template.
func Escape(t *template.Template, name string) (map[string]string, error) {
	// Execution escapes first. It then fails, because there is no data.
	var escapeError *template.Error
	if err := t.ExecuteTemplate(io.Discard, name, nil); errors.As(err, &escapeError) {
		return nil, err
	}
	// html/template has escaped the templates that name calls, and no other.
	texts := map[string]string{}
	for names := []string{name}; len(names) > 0; names = names[1:] {
		called := t.Lookup(names[0])
		if _, known := texts[names[0]]; known {
			continue
		}
		if called == nil || called.Tree == nil {
			return nil, fmt.Errorf("template %q is not defined", names[0])
		}
		texts[names[0]] = called.Tree.Root.String()
		for _, m := range templateCall.FindAllStringSubmatch(texts[names[0]], -1) {
			names = append(names, m[1])
		}
	}
	return texts, nil
}

// FormatSource returns escaped templates as Parse takes them.
func FormatSource(texts map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(&b, "{{define %q}}%s{{end}}\n", name, texts[name])
	}
	return b.String()
}
