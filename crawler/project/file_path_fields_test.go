package project

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestPathFields: every text field of a Project is either in filePathFields, whose entry returns a
// pointer to its value, or in nonPathTextFields.
func TestPathFields(t *testing.T) {
	listed := map[string]bool{}
	for _, name := range nonPathTextFields {
		listed[name] = true
	}
	for _, f := range filePathFields {
		if listed[f.name] {
			t.Errorf("%s is in both lists", f.name)
		}
		listed[f.name] = true
		var p Project
		v := p.fieldAt(f.name)
		if v.Kind() == reflect.Slice {
			v.Set(reflect.ValueOf([]string{"x"}))
		} else {
			v.SetString("x")
		}
		found := 0
		p.ForEachFilePath(func(of FilePathField, _ string, path *string) {
			if found++; of.name != f.name || *path != "x" {
				t.Errorf("%s: the table reaches %q of %s", f.name, *path, of.name)
			}
		})
		if found != 1 {
			t.Errorf("%s: the table reaches %d values, want 1", f.name, found)
		}
	}
	for _, name := range textFieldPaths(reflect.TypeFor[Project](), "") {
		if !listed[name] {
			t.Errorf("%s holds text: add it to filePathFields if it names files, or else to nonPathTextFields of "+
				"this test", name)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("no text field %s exists", name)
	}
}

// textFieldPaths returns the paths of the text fields of a type in the project file. "*" stands for
// any key of a map.
func textFieldPaths(t reflect.Type, path string) (names []string) {
	switch t.Kind() {
	case reflect.String:
		return []string{path}
	case reflect.Pointer:
		return textFieldPaths(t.Elem(), path)
	case reflect.Slice:
		return textFieldPaths(t.Elem(), path)
	case reflect.Map:
		below := textFieldPaths(t.Elem(), path+".*")
		// the keys are text
		return append(slices.DeleteFunc(below, func(s string) bool { return s == path+".*" }), path)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.IsExported() && yamlFieldName(f) != "" {
				names = append(names, textFieldPaths(f.Type, strings.TrimPrefix(path+"."+yamlFieldName(f), "."))...)
			}
		}
	}
	return names
}

// nonPathTextFields lists the text fields of a Project that do not name files.
var nonPathTextFields = []string{
	"project", "agent.product", "agent.wider", "agent.version", "agent.contact", "agent.signature.directory",
	"agent.signature.agent_form",
	"seeds", "handler", "scope.within", "scope.seed_redirects", "scope.include", "scope.exclude", "scope.params.drop",
	"scope.params.keep",
	"robots.dialect", "robots.purpose", "output.mode", "politeness.window.hours", "politeness.window.zone",
	"politeness.hosts", "politeness.hosts.*.reason", "politeness.hosts.*.expires", "politeness.hosts.*.window.hours",
	"politeness.hosts.*.window.zone", "fetch.connections.post_quantum",
	"fetch.content_types", "fetch.headers", "fetch.proxy", "fetch.connect_to", "revisit.mode",
	"store.redis.addresses", "store.redis.username", "store.redis.prefix", "store.redis.durability",
}
