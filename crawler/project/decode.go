package project

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/decorum-crawler/decorum/internal/yamllimit"
)

// decode parses d.Text into d.Project. The goccy parser finds the tokens and their positions. This
// package decodes the values, so that errors use the terms of the project file and not those of Go.
// decode returns an error of the syntax, which ends it. It adds errors of fields to d.decodeErrors.
func (d *File) decode() error {
	// Check the limits on tokens before the parser, whose cost can exceed the length of the text.
	tokens, exceeded := yamllimit.Tokenize(d.Text,
		"anchors, aliases and tags have no place in a project file; write the value itself")
	if exceeded != nil {
		return d.errorAt(textPosition{exceeded.Line, exceeded.Column}, "", exceeded.Problem)
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return d.syntaxError(err)
	}
	// A file has at most one document. A file of comments has none.
	if len(file.Docs) > 1 {
		return d.errorAt(yamlTokenPosition(file.Docs[1].Start), "",
			"a project file holds one document; here a second begins")
	}
	d.firstField = textPosition{1, 1}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil // only comments: all fields keep their defaults
	}
	d.decodeValue(file.Docs[0].Body, reflect.ValueOf(&d.Project).Elem(), "")
	return nil
}

// syntaxError converts an error of the YAML parser into an *Error.
func (d *File) syntaxError(err error) error {
	if at, ok := errors.AsType[yaml.Error](err); ok && at.GetToken() != nil {
		position := yamlTokenPosition(at.GetToken())
		column := d.tabInIndentation(position.line)
		if column > 0 && strings.Contains(at.GetMessage(), "'\t'") { // the parser's message shows a blank
			return d.errorAt(textPosition{position.line, column}, "", "a tab; YAML indents with spaces")
		}
		return d.errorAt(position, "", at.GetMessage())
	}
	return d.errorAt(textPosition{}, "", "the file is not YAML")
}

// tabInIndentation returns the column of the first tab before the text of a line; 0 if there is none.
func (d *File) tabInIndentation(line int) (column int) {
	lines := strings.Split(d.Text, "\n")
	if line < 1 || line > len(lines) {
		return 0
	}
	text := lines[line-1]
	indentation := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	return strings.IndexByte(indentation, '\t') + 1
}

// yamlTokenPosition returns the position of tk, or the start of the file for nil.
func yamlTokenPosition(tk *token.Token) textPosition {
	if tk == nil {
		return textPosition{1, 1}
	}
	return textPosition{tk.Position.Line, tk.Position.Column}
}

// decodeValue decodes node into v, the field at path, and records the position of the field.
func (d *File) decodeValue(node ast.Node, v reflect.Value, path string) {
	at := yamlTokenPosition(node.GetToken())
	// Refuse what no field may have.
	switch node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		d.addDecodeError(at, path, FieldProblem{Problem: "anchors, aliases and tags have no place in a project " +
			"file; write the value itself"})
		return
	case *ast.NullNode:
		if key, ok := d.positions[path]; ok {
			at = key
		}
		d.addDecodeError(at, path, FieldProblem{path, " has no value: give it one, or delete the line"})
		return
	}
	if v.Kind() == reflect.Pointer { // an optional field: nil means that the file leaves it out
		v.Set(reflect.New(v.Type().Elem()))
		d.decodeValue(node, v.Elem(), path)
		return
	}
	// Mappings and lists contain further values.
	switch n := node.(type) {
	case ast.MapNode:
		d.decodeMapping(n, v, path)
		return
	case *ast.SequenceNode:
		d.decodeList(n, v, path)
		return
	}
	d.positions[path] = at
	if v.Kind() == reflect.Struct {
		d.addTypeMismatch(node, v, path)
	} else if err := setScalarFromText(v, scalarText(node)); err != nil {
		d.addDecodeError(at, path, FieldProblem{path, ": " + err.Error()})
	}
}

// scalarText returns the text of a scalar, without quotes.
func scalarText(node ast.Node) string {
	if block, ok := node.(*ast.LiteralNode); ok {
		return block.Value.Value
	}
	return node.GetToken().Value
}

// decodeMapping decodes a mapping into v: the fields of a struct, or the entries of a map such as
// politeness.hosts. path is the path of v. An unknown field of a struct is an error.
func (d *File) decodeMapping(n ast.MapNode, v reflect.Value, path string) {
	if v.Kind() != reflect.Struct && v.Kind() != reflect.Map {
		d.addTypeMismatch(n.(ast.Node), v, path)
		return
	}
	if v.Kind() == reflect.Map {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for it := n.MapRange(); it.Next(); {
		key, name := it.Key(), scalarText(it.Key())
		sub := strings.TrimPrefix(path+"."+name, ".")
		d.positions[sub] = yamlTokenPosition(key.GetToken())
		if path == "" && len(d.positions) == 1 {
			d.firstField = d.positions[sub]
		}
		// A map accepts every key. reflect cannot set an entry in place, so decode a copy first.
		if v.Kind() == reflect.Map {
			entry := reflect.New(v.Type().Elem()).Elem()
			d.decodeValue(it.Value(), entry, sub)
			v.SetMapIndex(reflect.ValueOf(name), entry)
		} else if field, ok := fieldByYAMLName(v, name); ok {
			d.decodeValue(it.Value(), field, sub)
		} else {
			d.addUnknownField(v.Type(), path, name)
		}
	}
}

// addUnknownField adds the error of a field that struct t, which is at path, does not have. If the
// name resembles that of a field, the unknown field counts as that one.
func (d *File) addUnknownField(t reflect.Type, path, name string) {
	sub := strings.TrimPrefix(path+"."+name, ".")
	problem := fmt.Sprintf("unknown field %q; ", sub)
	if printableFieldPattern.MatchString(sub) {
		problem = fmt.Sprintf("unknown field %s; ", sub) // unquoted, Error shows it
	}
	if len(d.decodeErrors) >= maxListedErrors {
		problem = "" // it is only counted
	} else if meant := similarField(t, path, name); meant != "" {
		problem += "did you mean " + meant + "?"
		d.markUndecoded(meant)
	} else {
		problem += "expected one of " + strings.Join(yamlFieldNames(t), ", ")
	}
	d.addDecodeError(d.positions[sub], sub, FieldProblem{Problem: problem})
}

// printableFieldPattern matches the path of an unknown field whose name is letters and underscores, as field
// names are. Other names may be secrets of a file that is no project file.
var printableFieldPattern = regexp.MustCompile(`^([-.a-z0-9_\[\]]{1,100}\.)?[a-z_]{1,32}$`)

// decodeList decodes a list into v, the field at path.
func (d *File) decodeList(n *ast.SequenceNode, v reflect.Value, path string) {
	if v.Kind() != reflect.Slice {
		d.addTypeMismatch(n, v, path)
		return
	}
	d.positions[path] = yamlTokenPosition(n.GetToken())
	v.Set(reflect.MakeSlice(v.Type(), len(n.Values), len(n.Values)))
	for i, item := range n.Values {
		if v.Type().Elem().Kind() == reflect.String {
			item = rejoinColonScalar(item)
		}
		d.decodeValue(item, v.Index(i), indexedFieldName(path, i))
	}
}

// rejoinColonScalar corrects an item of a list such as host:80. A colon without a blank after it is
// part of a plain value (YAML 1.2.2, 7.3.3), but within braces the parser returns a mapping of host
// to 80. rejoinColonScalar returns the scalar for such a mapping, and any other item unchanged.
func rejoinColonScalar(item ast.Node) ast.Node {
	fields, ok := item.(*ast.MappingNode)
	if !ok || len(fields.Values) != 1 {
		return item
	}
	pair := fields.Values[0]
	key, value := pair.Key.GetToken(), pair.Value.GetToken()
	if _, ok := pair.Value.(ast.ScalarNode); !ok || value.Indicator == token.QuotedScalarIndicator ||
		!areAdjacentTokens(key, pair.Start) || !areAdjacentTokens(pair.Start, value) {
		return item
	}
	joined := *key
	joined.Value += ":" + value.Value
	return ast.String(&joined)
}

// areAdjacentTokens reports whether two tokens follow each other without a blank or quote between
// them.
func areAdjacentTokens(before, after *token.Token) bool {
	return after.Position.Line == before.Position.Line &&
		after.Position.Column == before.Position.Column+utf8.RuneCountInString(before.Value)
}

// addTypeMismatch adds the error of a value of another shape than its field: for example a list
// where the file needs a number. path is the path of the field.
func (d *File) addTypeMismatch(node ast.Node, v reflect.Value, path string) {
	at := yamlTokenPosition(node.GetToken())
	found := fmt.Sprintf("found %q", scalarText(node))
	switch n := node.(type) {
	case ast.MapNode:
		found = "found fields"
		if it := n.MapRange(); it.Next() {
			at = yamlTokenPosition(it.Key().GetToken())
			found = fmt.Sprintf("found the field %q", scalarText(it.Key()))
		}
	case *ast.SequenceNode:
		found = "found a list"
	}
	d.addDecodeError(at, path, FieldProblem{cmp.Or(path, "a project file"),
		fmt.Sprintf(": expected %s, %s", expectedYAMLShape(v.Type()), found)})
}
