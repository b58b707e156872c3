package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/decorum-crawler/decorum/robots/aiuse"
)

// fetchDocument returns the OpenAPI document that the server serves.
func fetchDocument(t *testing.T) map[string]any {
	t.Helper()
	w := testRequest{method: "GET", path: "/openapi.json"}.withToken(readToken).sendTo(newServer(t, &fakeDaemon{},
		func(c *ServerConfig) { c.Version = "1.2.3" }))
	var doc map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// compileSchema returns the schema at a JSON Pointer of a document.
func compileSchema(t *testing.T, doc any, at string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("https://decorum.test/openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("https://decorum.test/openapi.json#" + at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDocumentIsOpenAPI validates the document with the schema that the OpenAPI Initiative
// publishes.
func TestDocumentIsOpenAPI(t *testing.T) {
	text, err := os.ReadFile("testdata/openapi-3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	standard, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	doc := fetchDocument(t)
	if err := compileSchema(t, standard, "").Validate(any(doc)); err != nil {
		t.Error(err)
	}
	if version := doc["info"].(map[string]any)["version"]; version != "1.2.3" {
		t.Errorf("the version is %v", version)
	}
	doc["paths"].(map[string]any)["healthz"] = 1 // an invalid document fails the check
	if err := compileSchema(t, standard, "").Validate(any(doc)); err == nil {
		t.Error("a document that is wrong passes")
	}
}

// The document has exactly the routes of the table.
func TestDocumentHasRoutes(t *testing.T) {
	count := 0
	names := map[string]bool{}
	paths := fetchDocument(t)["paths"].(map[string]any)
	for path, item := range paths {
		for method, o := range item.(map[string]any) {
			count++
			operation := o.(map[string]any)
			i := slices.IndexFunc(routes, func(rt route) bool {
				return rt.path == path && strings.EqualFold(rt.method, method)
			})
			if i < 0 {
				t.Errorf("%s %s is in the document only", method, path)
				continue
			}
			rt := routes[i]
			if names[rt.operationID] {
				t.Errorf("two operations are called %s", rt.operationID)
			}
			names[rt.operationID] = true
			if operation["operationId"] != rt.operationID ||
				(rt.role != RolePublic) != (operation["x-decorum-role"] == string(rt.role)) {
				t.Errorf("%s %s: %v", method, path, operation)
			}
		}
	}
	if count != len(routes) {
		t.Errorf("the document has %d operations, the table %d", count, len(routes))
	}
}

// TestAnswersFitSchemas calls every route of a daemon with empty answers and of a daemon that fills
// all fields, and validates the answers with the document. An answer must not have a field that the
// document lacks.
func TestAnswersFitSchemas(t *testing.T) {
	doc := fetchDocument(t)
	for _, s := range doc["components"].(map[string]any)["schemas"].(map[string]any) {
		s.(map[string]any)["additionalProperties"] = false
	}
	for _, rt := range routes {
		if rt.responseBodyPrototype == nil || rt.responseMediaType != "" || rt.operationID == "openapi" {
			continue
		}
		at := "/paths/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(rt.path) +
			"/" + strings.ToLower(rt.method) + "/responses/200/content/application~1json/schema"
		schema := compileSchema(t, doc, at)
		for _, filled := range []bool{false, true} {
			w := rt.exampleRequest().withToken(operateToken).sendTo(newServer(t, &fakeDaemon{fillsFields: filled}))
			if got := w.Header().Get("Content-Type"); got != "application/json" {
				t.Errorf("%s: the content type is %q", rt.operationID, got)
			}
			answer, err := jsonschema.UnmarshalJSON(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(answer); err != nil {
				t.Errorf("%s, filled %v: %v", rt.operationID, filled, err)
			}
		}
	}
	problem := compileSchema(t, doc, "/components/schemas/Problem")
	answer, err := jsonschema.UnmarshalJSON(testRequest{method: "GET",
		path: "/api/v1/projects"}.sendTo(newServer(t, &fakeDaemon{})).Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := problem.Validate(answer); err != nil {
		t.Error(err)
	}
}

// Each schema has a name from componentNames, and no two schemas share a name.
func TestComponentNames(t *testing.T) {
	s := &schemaBuilder{components: map[string]schema{}}
	for _, rt := range routes {
		for _, v := range []any{rt.responseBodyPrototype, rt.requestBodyPrototype} {
			if v != nil {
				s.schemaOf(reflect.TypeOf(v))
			}
		}
	}
	if _, ok := s.components[""]; ok {
		t.Error("the document has a type that componentNames lacks")
	}
	types := map[string]reflect.Type{}
	for typ, name := range componentNames {
		if types[name] != nil {
			t.Errorf("%v and %v are both named %s", types[name], typ, name)
		}
		types[name] = typ
	}
}

var update = flag.Bool("update", false, "write openapi.json again")

// TestOpenAPIDocument compares openapi.json with the document generated from the routes, the types
// and their comments. With -update it writes openapi.json.
func TestOpenAPIDocument(t *testing.T) {
	want := generateOpenAPI(t, routes)
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(openAPIJSON), "\n")); diff != "" {
		t.Errorf("openapi.json is not up to date; to write it again: go test ./crawler/daemon/api -run "+
			"TestOpenAPIDocument -update\n%s", diff)
	}
}

// The descriptions in the document are the comments of the source, with JSON names of fields.
func TestDocumentHasComments(t *testing.T) {
	s := &schemaBuilder{components: map[string]schema{}, docComments: parseDocComments(t)}
	s.schemaOf(reflect.TypeFor[Brake]())
	fields := s.components["Brake"]["properties"].(schema)
	if got := fields["delay_ms"].(schema)["description"]; got != "without stop: the shortest pause, and one visit "+
		"at a time" {
		t.Errorf("the description of delay_ms is %q", got)
	}
	s.schemaOf(reflect.TypeFor[Host]())
	descriptionOf := func(component, property string) any {
		return s.components[component]["properties"].(schema)[property].(schema)["description"]
	}
	if got := descriptionOf("Host", "coverage"); got != "done / (known - out_of_scope)" {
		t.Errorf("the description of coverage is %q", got)
	}
	s.schemaOf(reflect.TypeFor[aiuse.Signal]())
	want := "its line number in the file, from 1; 0 if it is not from a file"
	if got := descriptionOf("robots.Signal", "line"); got != want {
		t.Errorf("the description of line is %q", got)
	}
	if got := s.components["Brake"]["description"]; got != "A Brake stops or slows a host, in all projects." {
		t.Errorf("the description of Brake is %q", got)
	}
}
