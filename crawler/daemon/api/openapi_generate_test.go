package api

import (
	"encoding"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// This file generates openapi.json from the table of routes, the types of their requests and
// answers, and the comments of these types. TestOpenAPIDocument compares and writes the file.

// generateOpenAPI returns the OpenAPI document (3.1) of routes. Its version is openAPIVersion.
func generateOpenAPI(t *testing.T, routes []route) []byte {
	t.Helper()
	s := &schemaBuilder{components: map[string]schema{}, docComments: parseDocComments(t)}
	paths := map[string]schema{}
	for _, rt := range routes {
		if paths[rt.path] == nil {
			paths[rt.path] = schema{}
		}
		paths[rt.path][strings.ToLower(rt.method)] = s.operation(&rt)
	}
	s.schemaOf(reflect.TypeFor[Problem]())
	text, err := json.MarshalIndent(schema{
		"openapi": "3.1.0",
		"info": schema{"title": "decorum", "version": openAPIVersion,
			"license": schema{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "The API of a decorum daemon, a polite web crawler. Errors are problem details (RFC " +
				"9457). " +
				"Times are RFC 3339; fields whose name ends in _ms are in milliseconds."},
		"security": []schema{{"token": []string{}}, {"session": []string{}}},
		"paths":    paths,
		"components": schema{
			"schemas": s.components,
			"responses": schema{"Problem": schema{"description": "The problem",
				"content": mediaTypeContent("application/problem+json",
					schema{"$ref": componentRefPrefix + "Problem"})}},
			"parameters": schema{"Reason": schema{"name": reasonHeader, "in": "header",
				"description": "the reason of the call, for the audit", "schema": schema{"type": "string"}}},
			"securitySchemes": schema{
				"token": schema{"type": "http", "scheme": "bearer",
					"description": "the content of the file token or token-read in the daemon's data directory"},
				"session": schema{"type": "apiKey", "in": "cookie", "name": sessionCookieName},
			},
		},
	}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

func mediaTypeContent(contentType string, s schema) schema {
	return schema{contentType: schema{"schema": s}}
}

// operation describes a route.
func (s *schemaBuilder) operation(rt *route) schema {
	op := schema{
		"operationId": rt.operationID, "summary": rt.summary,
		"responses": schema{rt.successStatus(): s.responseSchema(rt),
			"default": schema{"$ref": "#/components/responses/Problem"}},
	}
	description := rt.description
	if rt.role == RolePublic {
		op["security"] = []schema{}
	} else {
		description = strings.TrimSpace("Needs the role " + string(rt.role) + ". " + description)
		op["x-decorum-role"] = rt.role
	}
	if description != "" {
		op["description"] = description
	}
	if p := s.parameters(rt); len(p) > 0 {
		op["parameters"] = p
	}
	if body := s.requestBody(rt); body != nil {
		op["requestBody"] = body
	}
	responses := op["responses"].(schema)
	if rt.mayCreate {
		responses["201"] = schema{"description": "Created",
			"headers": schema{"Location": schema{"schema": schema{"type": "string"}}}}
	}
	return op
}

// successStatus returns the status of a successful answer.
func (rt *route) successStatus() string {
	if rt.responseBodyPrototype == nil {
		return "204"
	}
	return "200"
}

// responseSchema describes the answer of a route.
func (s *schemaBuilder) responseSchema(rt *route) schema {
	if rt.responseBodyPrototype == nil {
		return schema{"description": "Done"}
	}
	contentType := rt.responseMediaType
	if contentType == "" {
		contentType = "application/json"
	}
	a := schema{"description": rt.summary,
		"content": mediaTypeContent(contentType, s.schemaOf(reflect.TypeOf(rt.responseBodyPrototype)))}
	if _, ok := rt.responseBodyPrototype.(Project); ok && rt.method == "GET" {
		a["content"].(schema)["application/yaml"] = schema{"schema": schema{"type": "string"}}
	}
	return a
}

var pathParamPattern = regexp.MustCompile(`{(\w+)}`)

// parameters describes the parameters of the path and the query, and the header with the reason.
func (s *schemaBuilder) parameters(rt *route) []schema {
	var all []schema
	for _, m := range pathParamPattern.FindAllStringSubmatch(rt.path, -1) {
		all = append(all, schema{"name": m[1], "in": "path", "required": true, "schema": schema{"type": "string"}})
	}
	for _, p := range rt.queryParams {
		paramSchema := schema{"type": p.jsonType}
		if p.enum != nil {
			paramSchema["enum"] = p.enum
		}
		all = append(all, schema{"name": p.name, "in": "query", "description": p.description, "schema": paramSchema})
	}
	if isUnsafeMethod(rt.method) && rt.role == RoleOperate {
		all = append(all, schema{"$ref": "#/components/parameters/Reason"})
	}
	return all
}

// requestBody describes the request body of a route; nil: it takes none.
func (s *schemaBuilder) requestBody(rt *route) schema {
	if len(rt.requestMediaTypes) == 0 {
		return nil
	}
	bodySchema := schema{"type": "string"}
	if rt.requestBodyPrototype != nil {
		bodySchema = s.schemaOf(reflect.TypeOf(rt.requestBodyPrototype))
	}
	contents := schema{}
	for _, t := range rt.requestMediaTypes {
		contents[t] = schema{"schema": bodySchema}
		if rt.requestBodyPrototype == nil && t == "application/json" {
			contents[t] = schema{"schema": schema{"type": "array"}}
		}
		if t == formTypes[0] {
			contents[t] = schema{"schema": schema{"type": "object",
				"properties": schema{"token": bodySchema, "next": bodySchema}}}
		}
	}
	return schema{"content": contents}
}

// A schema is a JSON Schema (2020-12).
type schema = map[string]any

// enumValues holds the values of the string types that have a fixed set.
var enumValues = map[reflect.Type]any{
	reflect.TypeFor[ProjectState](): []ProjectState{StateRunning, StatePausing, StatePaused,
		StateStopped, StateDone, StateFailed},
	reflect.TypeFor[Role](): []Role{RolePublic, RoleRead, RoleOperate},
}

// A schemaBuilder makes the schemas of types as encoding/json writes them.
type schemaBuilder struct {
	components  map[string]schema // by the name in componentNames
	docComments map[string]string // the comments of types and fields, by goTypeName(type) and goTypeName(type).Field
}

var (
	timeType          = reflect.TypeFor[time.Time]()
	millisecondsType  = reflect.TypeFor[Milliseconds]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
	jsonMarshalerType = reflect.TypeFor[json.Marshaler]()
	bytesType         = reflect.TypeFor[[]byte]()
)

// componentRefPrefix is the reference to the schemas of a document.
const componentRefPrefix = "#/components/schemas/"

// schemaOf returns the schema of a type, or a reference to it.
func (s *schemaBuilder) schemaOf(t reflect.Type) schema {
	switch {
	case t == timeType:
		return schema{"type": "string", "format": "date-time"}
	case t == millisecondsType:
		return schema{"type": "integer", "description": "milliseconds"}
	case t == bytesType:
		return schema{"type": "string", "contentEncoding": "base64"}
	case t.Implements(jsonMarshalerType):
		return schema{}
	case t.Implements(textMarshalerType):
		return schema{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.schemaOf(t.Elem())
	case reflect.Slice, reflect.Array:
		return schema{"type": "array", "items": s.schemaOf(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": s.schemaOf(t.Elem())}
	case reflect.Struct:
		return s.componentRef(t)
	case reflect.String:
		stringSchema := schema{"type": "string"}
		if values := enumValues[t]; values != nil {
			stringSchema["enum"] = values
		}
		return stringSchema
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return schema{"type": "number"}
	case reflect.Interface:
		return schema{}
	}
	return schema{"type": "integer"}
}

// componentRef returns a reference to a struct's schema, and creates the schema if it is missing.
func (s *schemaBuilder) componentRef(t reflect.Type) schema {
	name := componentNames[t]
	if s.components[name] == nil {
		s.components[name] = schema{} // ends the recursion of types that contain themselves
		s.components[name] = s.objectSchema(t)
	}
	return schema{"$ref": componentRefPrefix + name}
}

// goTypeName returns a type's name in Go, with its package unless that is this package.
func goTypeName(t reflect.Type) string {
	pkg := path.Base(t.PkgPath())
	if pkg == path.Base(reflect.TypeFor[Project]().PkgPath()) {
		return t.Name()
	}
	return pkg + "." + t.Name()
}

// objectSchema returns the schema of a struct.
func (s *schemaBuilder) objectSchema(t reflect.Type) schema {
	properties, required := schema{}, []string{}
	s.addFields(t, properties, &required)
	o := schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	if description := s.descriptionOf(t, ""); description != "" {
		o["description"] = description
	}
	return o
}

var goNamePattern = regexp.MustCompile(`\b[A-Z][a-z]\w*`) // it does not match URL, which is an English word

// descriptionOf returns the comment of a struct, or of one of its fields, with the struct's name in
// the document and the fields' names in JSON.
func (s *schemaBuilder) descriptionOf(t reflect.Type, field string) string {
	return goNamePattern.ReplaceAllStringFunc(s.docComments[strings.TrimSuffix(goTypeName(t)+"."+field, ".")],
		func(word string) string {
			if name, ok := componentNames[t]; ok && word == t.Name() {
				return name[strings.LastIndex(name, ".")+1:]
			}
			f, ok := t.FieldByName(word)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); ok && name != "" {
				return name
			}
			return word
		})
}

// addFields adds the fields of a struct. It adds those of embedded structs last; an outer field
// hides an embedded field of the same name.
func (s *schemaBuilder) addFields(t reflect.Type, properties schema, required *[]string) {
	var inner []reflect.Type
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			inner = append(inner, f.Type)
			continue
		case name == "-" || !f.IsExported() || properties[name] != nil:
			continue
		}
		p := s.schemaOf(f.Type)
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		if !optional {
			*required = append(*required, name)
			p = allowNull(p, f.Type)
		}
		if description := s.descriptionOf(t, f.Name); description != "" {
			p["description"] = description
		}
		properties[name] = p
	}
	for _, t := range inner {
		s.addFields(t, properties, required)
	}
}

// allowNull adds null to the schema of a type that may be nil.
func allowNull(p schema, t reflect.Type) schema {
	switch t.Kind() {
	case reflect.Slice, reflect.Map:
		p["type"] = []string{p["type"].(string), "null"}
	case reflect.Pointer:
		return schema{"oneOf": []schema{p, {"type": "null"}}}
	}
	return p
}

// componentNames holds the names of the OpenAPI document's schemas. Clients are generated from
// them, so a type that is renamed in Go keeps its name here.
var componentNames = map[reflect.Type]string{
	reflect.TypeFor[CrawlerIdentities]():      "About",
	reflect.TypeFor[AuditEntry]():             "AuditEntry",
	reflect.TypeFor[AuditPage]():              "AuditPage",
	reflect.TypeFor[Brake]():                  "Brake",
	reflect.TypeFor[BrakeRequest]():           "BrakeOrder",
	reflect.TypeFor[FrontierCounts]():         "Counts",
	reflect.TypeFor[RobotsDiffLine]():         "DiffLine",
	reflect.TypeFor[Event]():                  "Event",
	reflect.TypeFor[ExplainedRules]():         "ExplainedRules",
	reflect.TypeFor[ExplainedScope]():         "ExplainedScope",
	reflect.TypeFor[ExplainedFrontierState](): "ExplainedState",
	reflect.TypeFor[ExplainedNextVisit]():     "ExplainedVisit",
	reflect.TypeFor[ExplainedDecision]():      "ExplainedDecision",
	reflect.TypeFor[URLExplanation]():         "Explanation",
	reflect.TypeFor[Health]():                 "Health",
	reflect.TypeFor[Host]():                   "Host",
	reflect.TypeFor[HostDetail]():             "HostDetail",
	reflect.TypeFor[HostListPage]():           "HostPage",
	reflect.TypeFor[AddURLsResult]():          "Intake",
	reflect.TypeFor[ActiveVisit]():            "LiveVisit",
	reflect.TypeFor[VisitHistorySummary]():    "Page",
	reflect.TypeFor[Problem]():                "Problem",
	reflect.TypeFor[CrawlerIdentity]():        "Product",
	reflect.TypeFor[Project]():                "Project",
	reflect.TypeFor[RefusalSummary]():         "Refusal",
	reflect.TypeFor[FailedPage]():             "FailedPage",
	reflect.TypeFor[ProjectReloadResult]():    "Reloaded",
	reflect.TypeFor[CrawlReport]():            "Report",
	reflect.TypeFor[RewriteStep]():            "Rewriting",
	reflect.TypeFor[RobotsTextDiff]():         "RobotsDiff",
	reflect.TypeFor[RobotsFile]():             "RobotsFile",
	reflect.TypeFor[RobotsVersion]():          "RobotsVersion",
	reflect.TypeFor[ThroughputSample]():       "Sample",
	reflect.TypeFor[ProjectStats]():           "Stats",
	reflect.TypeFor[TokenRotation]():          "TokenRotation",
	reflect.TypeFor[FrontierURL]():            "URL",
	reflect.TypeFor[botauth.JWK]():            "botauth.JWK",
	reflect.TypeFor[botauth.KeySet]():         "botauth.KeySet",
	reflect.TypeFor[frontier.ClosedPattern](): "frontier.ClosedPattern",
	reflect.TypeFor[frontier.RefusalCount]():  "frontier.Sighted",
	reflect.TypeFor[FrontierStats]():          "FrontierStats",
	reflect.TypeFor[StoreFileStats]():         "StoreFileStats",
	reflect.TypeFor[ledger.Record]():          "ledger.Record",
	reflect.TypeFor[ledger.RunStart]():        "ledger.RunStart",
	reflect.TypeFor[ledger.HostOverride]():    "ledger.HostOverride",
	reflect.TypeFor[ledger.Request]():         "ledger.Request",
	reflect.TypeFor[ledger.RobotsVerdict]():   "ledger.RobotsVerdict",
	reflect.TypeFor[ledger.Response]():        "ledger.Response",
	reflect.TypeFor[ledger.Refusal]():         "ledger.Refusal",
	reflect.TypeFor[ledger.Checkpoint]():      "ledger.Checkpoint",
	reflect.TypeFor[ledger.SegmentStart]():    "ledger.SegmentStart",
	reflect.TypeFor[ledger.Recovery]():        "ledger.Recovery",
	reflect.TypeFor[ledger.ClockChange]():     "ledger.ClockChange",
	reflect.TypeFor[ledger.RunEnd]():          "ledger.RunEnd",
	reflect.TypeFor[robots.MatchingRule]():    "robots.Match",
	reflect.TypeFor[aiuse.Signal]():           "robots.Signal",
	reflect.TypeFor[robots.PathSpan]():        "robots.Span",
	reflect.TypeFor[robots.Verdict]():         "robots.Verdict",
}

// parseDocComments returns the comments of the types in the document's packages, and of their
// fields, by goTypeName(type) and goTypeName(type).Field.
func parseDocComments(t *testing.T) map[string]string {
	t.Helper()
	comments := map[string]string{}
	done := map[string]bool{}
	// gate.Explanation is embedded, so it has no component of its own.
	for _, typ := range append(slices.Collect(maps.Keys(componentNames)), reflect.TypeFor[gate.Explanation]()) {
		if done[typ.PkgPath()] {
			continue
		}
		done[typ.PkgPath()] = true
		files, err := filepath.Glob("../../.." + strings.TrimPrefix(typ.PkgPath(), decorum.ModulePath) + "/*.go")
		if err != nil || files == nil {
			t.Fatal(typ, files, err)
		}
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			collectTypeComments(comments, f, strings.TrimSuffix(goTypeName(typ), typ.Name()))
		}
	}
	return comments
}

// collectTypeComments adds the comments of a file's types and their fields. prefix is the prefix
// that goTypeName gives to these types.
func collectTypeComments(comments map[string]string, f *ast.File, prefix string) {
	ast.Inspect(f, func(n ast.Node) bool {
		g, ok := n.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE || len(g.Specs) != 1 {
			return true
		}
		spec := g.Specs[0].(*ast.TypeSpec)
		comments[prefix+spec.Name.Name] = commentText(g.Doc)
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range s.Fields.List {
				for _, name := range field.Names {
					comments[prefix+spec.Name.Name+"."+name.Name] = strings.TrimSpace(commentText(field.Doc) + " " +
						commentText(field.Comment))
				}
			}
		}
		return true
	})
}

func commentText(c *ast.CommentGroup) string {
	return strings.Join(strings.Fields(c.Text()), " ")
}
