package project

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/decorum-crawler/decorum/internal/doctest"
)

// TestProjectSchema: schema.json agrees with the fields of Project, their comments and defaults, and with
// the tables of ranges and choices.
func TestProjectSchema(t *testing.T) {
	var got bytes.Buffer
	encoder := json.NewEncoder(&got)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(projectSchema(t)); err != nil {
		t.Fatal(err)
	}
	want := []byte(JSONSchema)
	if *doctest.Update {
		want = got.Bytes()
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("schema.json differs from the code; write it again with -update:\n%s", diff)
	}
}

// A schemaObject is one schema of a JSON Schema.
type schemaObject = map[string]any

// projectSchema returns the JSON Schema of project files.
func projectSchema(t *testing.T) schemaObject {
	root := newFieldWriter(t, nil).structSchema(t, "", reflect.ValueOf(Default()))
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "A project file of decorum"
	// What checkProject requires.
	root["required"] = []string{"agent"}
	root["properties"].(schemaObject)["agent"].(schemaObject)["required"] = []string{"contact"}
	atLeastOne := func(list string) schemaObject {
		return schemaObject{"required": []string{list}, "properties": schemaObject{list: schemaObject{"minItems": 1}}}
	}
	root["anyOf"] = []schemaObject{atLeastOne("seeds"), atLeastOne("seed_files")}
	root["properties"].(schemaObject)["project"].(schemaObject)["pattern"] = NamePattern.String()
	return root
}

// structSchema returns the schema of struct v at path. The zero Value stands for a struct without defaults.
func (f *fieldWriter) structSchema(t *testing.T, path string, v reflect.Value) schemaObject {
	properties := schemaObject{}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		sub := strings.TrimPrefix(path+"."+yamlFieldName(field), ".")
		properties[yamlFieldName(field)] = f.fieldSchema(t, sub, f.describe(v.Type(), field, sub), v.Field(i))
	}
	return schemaObject{"type": "object", "additionalProperties": false, "properties": properties}
}

// fieldSchema returns the schema of a field with its description and default.
func (f *fieldWriter) fieldSchema(t *testing.T, path, description string, v reflect.Value) schemaObject {
	var s schemaObject
	switch {
	case v.Kind() == reflect.Pointer:
		return f.fieldSchema(t, path, description, reflect.Zero(v.Type().Elem()))
	case doctest.IsFieldStruct(v.Type()):
		s = f.structSchema(t, path, v)
		if description == "" {
			description = f.structDoc(v.Type())
		}
	case v.Kind() == reflect.Map:
		entry := reflect.Zero(v.Type().Elem())
		s = schemaObject{"type": "object", "additionalProperties": f.fieldSchema(t, path+".NAME", "", entry)}
	case v.Kind() == reflect.Slice:
		s = schemaObject{"type": "array", "items": scalarSchema(path, v.Type().Elem())}
	default:
		s = scalarSchema(path, v.Type())
	}
	if description = f.flagNote(description, path); description != "" {
		s["description"] = description
	}
	if text := defaultOf(v); text != "" && !strings.Contains(path, ".NAME") {
		s["default"] = v.Interface()
	}
	return s
}

// scalarSchema returns the schema of a field, or of an item of a list, of type typ.
func scalarSchema(path string, typ reflect.Type) schemaObject {
	s := schemaObject{}
	switch typ {
	case reflect.TypeFor[Duration](): // 0 needs no unit
		s = schemaObject{"type": []string{"string", "integer"}, "minimum": 0, "maximum": 0,
			"pattern": `^(0|[0-9]+d|([0-9]+d)?([0-9.]+(ns|us|µs|ms|s|m|h))+)$`}
	case reflect.TypeFor[Size]():
		units := make([]string, len(sizeUnits))
		for i, u := range sizeUnits {
			units[i] = u.name
		}
		s = schemaObject{"type": []string{"string", "integer"}, "minimum": 0,
			"pattern": `^[0-9]+ *(` + strings.Join(units, "|") + `)$`}
	case reflect.TypeFor[Date]():
		s = schemaObject{"type": "string", "pattern": `^[0-9]{4}-[0-9]{2}-[0-9]{2}$`}
	default:
		switch typ.Kind() {
		case reflect.Bool:
			s["type"] = "boolean"
		case reflect.Int:
			s["type"] = "integer"
		case reflect.Float64:
			s["type"] = "number"
		case reflect.String:
			s["type"] = []string{"string", "number", "boolean"} // version: 1.0
		default:
			panic(fmt.Sprintf("%s: a schema for %v is missing", path, typ))
		}
	}
	for _, n := range numberFields {
		if n.path == path {
			s["minimum"], s["maximum"] = n.min, n.max
		}
	}
	for _, c := range choiceFields {
		if c.path != path {
			continue
		}
		s = schemaObject{"type": "string", "enum": c.choices}
		// Editors read 0640 without quotes as a number, either octal or decimal.
		if _, err := strconv.Atoi(c.choices[0]); err == nil {
			s = schemaObject{"anyOf": []schemaObject{s, {"type": "integer"}}}
		}
	}
	return s
}

// schemaProblem returns the error of a project file under the JSON Schema, or nil.
func schemaProblem(t *testing.T, text []byte) error {
	t.Helper()
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(JSONSchema))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("project.json", schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("project.json")
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(document)
}

// TestSchemaAcceptsProjects: the JSON Schema accepts the sample, the examples, and a project with every
// default.
func TestSchemaAcceptsProjects(t *testing.T) {
	p := Default()
	p.Name, p.Agent.Contact, p.Seeds = "books", "mailto:bot@example.com", []string{"https://example.com/"}
	defaults, err := yaml.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string][]byte{"the defaults": defaults, "a minimal file": []byte(minimalFile),
		"scalars of other types": []byte(minimalFile + "limits: {duration: 0, bytes: 10, pages: 3}\n" +
			"fetch: {headers: {X-A: 1, X-B: true}, timeout: 1d12h30m, max_body: 10 MiB}\noutput: {mode: 0640}\n" +
			"politeness: {hosts: {a.example: {delay: 2s, expires: 2027-01-31, window: {hours: '22:00-06:00'}}}}\n")}
	files, err := filepath.Glob("../../examples/*/*.yaml")
	inFolders, err2 := filepath.Glob("../../examples/*/*/*.yaml")
	if err != nil || err2 != nil || len(files)+len(inFolders) < 3 {
		t.Fatal(files, inFolders, err, err2)
	}
	for _, file := range append(append(files, inFolders...), "testdata/project.yaml") {
		if texts[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range texts {
		if err := schemaProblem(t, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSchemaRefusesMistakes: the JSON Schema refuses what the checks refuse by tables and types.
func TestSchemaRefusesMistakes(t *testing.T) {
	texts := []string{
		"seeds: [https://example.com/]\n", "agent: {contact: 'mailto:a@b.example'}\n",
		"agent: {product: a}\nseeds: [https://example.com/]\n",
		"agent: {contact: 'mailto:a@b.example'}\nseeds: []\n",
		minimalFile + "seed: [x]\n", minimalFile + "project: My Books\n", minimalFile + "limits: {workers: many}\n",
		minimalFile + "limits: {pages: 1.5}\n", minimalFile + "robots: {meta: 'yes'}\n",
		minimalFile + "politeness: {delay: 5 seconds}\n", minimalFile + "politeness: {delay: 5}\n",
		minimalFile + "fetch: {max_body: 10 megs}\n", minimalFile + "store: decorum-data\n",
		minimalFile + "seed_files: a\n", minimalFile + "politeness: {hosts: {a.example: {dealy: 1s}}}\n",
		minimalFile + "politeness: {hosts: {a.example: {expires: 31.1.2027}}}\n",
		minimalFile + "robots: {purpose: [x]}\n",
	}
	for _, f := range choiceFields {
		section, name, _ := strings.Cut(f.path, ".")
		if !strings.Contains(name, ".") && section != "agent" && f.path != "robots.purpose" {
			texts = append(texts, fmt.Sprintf("%s%s: {%s: x}\n", minimalFile, section, name))
		}
	}
	for _, f := range numberFields {
		section, name, _ := strings.Cut(f.path, ".")
		texts = append(texts, fmt.Sprintf("%s%s: {%s: -1}\n", minimalFile, section, name),
			fmt.Sprintf("%s%s: {%s: %s}\n", minimalFile, section, name, formatWithoutExponent(2*f.max)))
	}
	for _, text := range texts {
		if schemaProblem(t, []byte(text)) == nil {
			t.Errorf("the schema accepts\n%s", text)
		}
		d, err := ParseUnchecked("p.yaml", []byte(text))
		if err == nil {
			err = d.Check()
		}
		if err == nil {
			t.Errorf("Check accepts\n%s", text)
		}
	}
}
