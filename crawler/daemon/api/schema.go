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

// enumerations are the values of types that have few.
var enumerations = map[reflect.Type]any{
	reflect.TypeFor[State](): []State{Running, Pausing, Paused, Stopped, Done, Failed},
	reflect.TypeFor[Role]():  []Role{Open, Read, Operate},
}

// schemas makes the schemas of types as encoding/json writes them, by name.
type schemas struct {
	defs  map[string]schema
	about map[string]string // what the source says of nameOf(type), and of its fields: Type.Field
}

var (
	timeType      = reflect.TypeFor[time.Time]()
	millisType    = reflect.TypeFor[Milliseconds]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	anyJSON       = reflect.TypeFor[json.Marshaler]()
	bytesType     = reflect.TypeFor[[]byte]()
)

// refPrefix is where a document has its schemas.
const refPrefix = "#/components/schemas/"

// of returns the schema of a type, or a reference to it.
func (s *schemas) of(t reflect.Type) schema {
	switch {
	case t == timeType:
		return schema{"type": "string", "format": "date-time"}
	case t == millisType:
		return schema{"type": "integer", "description": "milliseconds"}
	case t == bytesType:
		return schema{"type": "string", "contentEncoding": "base64"}
	case t.Implements(anyJSON):
		return schema{}
	case t.Implements(textMarshaler):
		return schema{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice, reflect.Array:
		return schema{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.refer(t)
	case reflect.String:
		is := schema{"type": "string"}
		if known := enumerations[t]; known != nil {
			is["enum"] = known
		}
		return is
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return schema{"type": "number"}
	case reflect.Interface:
		return schema{}
	}
	return schema{"type": "integer"}
}

// refer returns a reference to a struct's schema, which is made if it is not there.
func (s *schemas) refer(t reflect.Type) schema {
	name := componentNames[t]
	if s.defs[name] == nil {
		s.defs[name] = schema{} // for types that hold themselves
		s.defs[name] = s.object(t)
	}
	return schema{"$ref": refPrefix + name}
}

// nameOf returns a type's name in Go, with its package if that is not this one.
func nameOf(t reflect.Type) string {
	pkg := path.Base(t.PkgPath())
	if pkg == path.Base(reflect.TypeFor[Project]().PkgPath()) {
		return t.Name()
	}
	return pkg + "." + t.Name()
}

// object returns the schema of a struct.
func (s *schemas) object(t reflect.Type) schema {
	properties, required := schema{}, []string{}
	s.fields(t, properties, &required)
	o := schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		o["required"] = required
	}
	if about := s.saysOf(t, ""); about != "" {
		o["description"] = about
	}
	return o
}

var goName = regexp.MustCompile(`\b[A-Z][a-z]\w*`) // not URL, which is a word

// saysOf returns what the source says of a struct, or of a field of it, with the
// struct called as in the document, and the fields that it names as in JSON.
func (s *schemas) saysOf(t reflect.Type, field string) string {
	return goName.ReplaceAllStringFunc(s.about[strings.TrimSuffix(nameOf(t)+"."+field, ".")], func(word string) string {
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

// fields adds the fields of a struct; those of structs in it come last, and give
// way to fields of the same name further out.
func (s *schemas) fields(t reflect.Type, properties schema, required *[]string) {
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
		p := s.of(f.Type)
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		if !optional {
			*required = append(*required, name)
			p = orNull(p, f.Type)
		}
		if about := s.saysOf(t, f.Name); about != "" {
			p["description"] = about
		}
		properties[name] = p
	}
	for _, t := range inner {
		s.fields(t, properties, required)
	}
}

// orNull adds null to the types of what may be nil.
func orNull(p schema, t reflect.Type) schema {
	switch t.Kind() {
	case reflect.Slice, reflect.Map:
		p["type"] = []string{p["type"].(string), "null"}
	case reflect.Pointer:
		return schema{"oneOf": []schema{p, {"type": "null"}}}
	}
	return p
}

// sources hold the comments of the types, which are the words of the document
// too.
//
//go:embed daemon.go explanation_types.go host_report_types.go problem.go robotsdiff.go handlers.go routes.go audit.go
var sources embed.FS

// others holds the comments of types of other packages, as commentsOf returns them:
// a package can embed no files but its own. TestWordsOfOthers writes it.
//
//go:embed external_comments.json
var others []byte

// comments returns what the sources say of types and fields.
func comments() map[string]string {
	about := map[string]string{}
	if err := json.Unmarshal(others, &about); err != nil {
		panic(err) // it is part of the program
	}
	files, _ := fs.Glob(sources, "*.go")
	for _, name := range files {
		src, _ := sources.ReadFile(name)
		maps.Copy(about, commentsOf(src))
	}
	return about
}

// commentsOf returns what a file of source says of types and fields, by Type and
// Type.Field. The file compiles, so that it can be parsed.
func commentsOf(src []byte) map[string]string {
	about := map[string]string{}
	f, err := parser.ParseFile(token.NewFileSet(), "", src, parser.ParseComments)
	if err != nil {
		return nil
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if g, ok := n.(*ast.GenDecl); ok && g.Tok == token.TYPE && len(g.Specs) == 1 {
			spec := g.Specs[0].(*ast.TypeSpec)
			about[spec.Name.Name] = commentText(g.Doc)
			commentFields(about, spec)
		}
		return true
	})
	return about
}

func commentFields(about map[string]string, spec *ast.TypeSpec) {
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range s.Fields.List {
		for _, name := range f.Names {
			about[spec.Name.Name+"."+name.Name] = strings.TrimSpace(commentText(f.Doc) + " " + commentText(f.Comment))
		}
	}
}

func commentText(c *ast.CommentGroup) string {
	return strings.Join(strings.Fields(c.Text()), " ")
}
