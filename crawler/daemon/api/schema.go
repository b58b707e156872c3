package api

import (
	"embed"
	"encoding"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// A schema is a JSON Schema (2020-12).
type schema = map[string]any

// enumValues are the values of types that have few.
var enumValues = map[reflect.Type]any{
	reflect.TypeFor[ProjectState](): []ProjectState{StateRunning, StatePausing, StatePaused, StateStopped, StateDone, StateFailed},
	reflect.TypeFor[Role]():         []Role{RolePublic, RoleRead, RoleOperate},
}

// schemaBuilder makes the schemas of types as encoding/json writes them, by name.
type schemaBuilder struct {
	components  map[string]schema
	docComments map[string]string // what the source says of goTypeName(type), and of its fields: Type.Field
}

var (
	timeType          = reflect.TypeFor[time.Time]()
	millisecondsType  = reflect.TypeFor[Milliseconds]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
	jsonMarshalerType = reflect.TypeFor[json.Marshaler]()
	bytesType         = reflect.TypeFor[[]byte]()
)

// componentRefPrefix is where a document has its schemas.
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

// componentRef returns a reference to a struct's schema, which is made if it is not there.
func (s *schemaBuilder) componentRef(t reflect.Type) schema {
	name := componentNames[t]
	if s.components[name] == nil {
		s.components[name] = schema{} // for types that hold themselves
		s.components[name] = s.objectSchema(t)
	}
	return schema{"$ref": componentRefPrefix + name}
}

// goTypeName returns a type's name in Go, with its package if that is not this one.
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

var goNamePattern = regexp.MustCompile(`\b[A-Z][a-z]\w*`) // not URL, which is a word

// descriptionOf returns what the source says of a struct, or of a field of it, with the
// struct called as in the document, and the fields that it names as in JSON.
func (s *schemaBuilder) descriptionOf(t reflect.Type, field string) string {
	return goNamePattern.ReplaceAllStringFunc(s.docComments[strings.TrimSuffix(goTypeName(t)+"."+field, ".")], func(word string) string {
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

// addFields adds the fields of a struct; those of structs in it come last, and give
// way to fields of the same name further out.
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

// allowNull adds null to the types of what may be nil.
func allowNull(p schema, t reflect.Type) schema {
	switch t.Kind() {
	case reflect.Slice, reflect.Map:
		p["type"] = []string{p["type"].(string), "null"}
	case reflect.Pointer:
		return schema{"oneOf": []schema{p, {"type": "null"}}}
	}
	return p
}

// sourceFiles hold the comments of the types, which are the words of the document
// too.
//
//go:embed daemon.go explanation_types.go host_report_types.go problem.go robotsdiff.go handlers.go routes.go audit.go
var sourceFiles embed.FS

// externalComments holds the comments of types of other packages, as parseDocComments returns them:
// a package can embed no files but its own. TestExternalComments writes it.
//
//go:embed external_comments.json
var externalComments []byte

// loadDocComments returns what the sources say of types and fields.
func loadDocComments() map[string]string {
	comments := map[string]string{}
	if err := json.Unmarshal(externalComments, &comments); err != nil {
		panic(err) // it is part of the program
	}
	files, _ := fs.Glob(sourceFiles, "*.go")
	for _, name := range files {
		src, _ := sourceFiles.ReadFile(name)
		maps.Copy(comments, parseDocComments(src))
	}
	return comments
}

// parseDocComments returns what a file of source says of types and fields, by Type and
// Type.Field. The file compiles, so that it can be parsed.
func parseDocComments(src []byte) map[string]string {
	comments := map[string]string{}
	f, err := parser.ParseFile(token.NewFileSet(), "", src, parser.ParseComments)
	if err != nil {
		return nil
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if g, ok := n.(*ast.GenDecl); ok && g.Tok == token.TYPE && len(g.Specs) == 1 {
			spec := g.Specs[0].(*ast.TypeSpec)
			comments[spec.Name.Name] = commentText(g.Doc)
			collectFieldComments(comments, spec)
		}
		return true
	})
	return comments
}

func collectFieldComments(comments map[string]string, spec *ast.TypeSpec) {
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			comments[spec.Name.Name+"."+name.Name] = strings.TrimSpace(commentText(f.Doc) + " " + commentText(f.Comment))
		}
	}
}

func commentText(c *ast.CommentGroup) string {
	return strings.Join(strings.Fields(c.Text()), " ")
}
