package project

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
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
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil // only comments: all fields keep their defaults
	}
	return d.decodeValue(file.Docs[0].Body, reflect.ValueOf(&d.Project).Elem(), "")
}

// syntaxError converts an error of the YAML parser into an *Error.
func (d *File) syntaxError(err error) error {
	if at, ok := errors.AsType[yaml.Error](err); ok && at.GetToken() != nil {
		return d.errorAt(yamlTokenPosition(at.GetToken()), "", at.GetMessage())
	}
	return d.errorAt(textPosition{}, "", "the file is not YAML")
}

// yamlTokenPosition returns the position of tk, or the start of the file for nil.
func yamlTokenPosition(tk *token.Token) textPosition {
	if tk == nil {
		return textPosition{1, 1}
	}
	return textPosition{tk.Position.Line, tk.Position.Column}
}

// decodeValue decodes node into v, the field at path, and records the position of the field.
func (d *File) decodeValue(node ast.Node, v reflect.Value, path string) error {
	at := yamlTokenPosition(node.GetToken())
	// Refuse what no field may have.
	switch node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return d.errorAt(at, "", "anchors, aliases and tags have no place in a project file; write the value itself")
	case *ast.NullNode:
		if key, ok := d.positions[path]; ok {
			at = key
		}
		return d.errorAt(at, path, " has no value: give it one, or delete the line")
	}
	if v.Kind() == reflect.Pointer { // an optional field: nil means that the file leaves it out
		v.Set(reflect.New(v.Type().Elem()))
		return d.decodeValue(node, v.Elem(), path)
	}
	// Mappings and lists contain further values.
	switch n := node.(type) {
	case ast.MapNode:
		return d.decodeMapping(n, v, path)
	case *ast.SequenceNode:
		return d.decodeList(n, v, path)
	}
	d.positions[path] = at
	if v.Kind() == reflect.Struct {
		return d.typeMismatchError(node, v, path)
	}
	if err := setScalarFromText(v, scalarText(node)); err != nil {
		return d.errorAt(at, path, ": "+err.Error())
	}
	return nil
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
func (d *File) decodeMapping(n ast.MapNode, v reflect.Value, path string) error {
	if v.Kind() != reflect.Struct && v.Kind() != reflect.Map {
		return d.typeMismatchError(n.(ast.Node), v, path)
	}
	if v.Kind() == reflect.Map {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for it := n.MapRange(); it.Next(); {
		key, name := it.Key(), scalarText(it.Key())
		sub := strings.TrimPrefix(path+"."+name, ".")
		d.positions[sub] = yamlTokenPosition(key.GetToken())
		// A map accepts every key. reflect cannot set an entry in place, so decode a copy first.
		if v.Kind() == reflect.Map {
			entry := reflect.New(v.Type().Elem()).Elem()
			if err := d.decodeValue(it.Value(), entry, sub); err != nil {
				return err
			}
			v.SetMapIndex(reflect.ValueOf(name), entry)
			continue
		}
		field, ok := fieldByYAMLName(v, name)
		if !ok {
			return d.errorAt(d.positions[sub], "",
				fmt.Sprintf("unknown field %q; expected one of %s", sub, strings.Join(yamlFieldNames(v.Type()), ", ")))
		}
		if err := d.decodeValue(it.Value(), field, sub); err != nil {
			return err
		}
	}
	return nil
}

// decodeList decodes a list into v, the field at path.
func (d *File) decodeList(n *ast.SequenceNode, v reflect.Value, path string) error {
	if v.Kind() != reflect.Slice {
		return d.typeMismatchError(n, v, path)
	}
	d.positions[path] = yamlTokenPosition(n.GetToken())
	v.Set(reflect.MakeSlice(v.Type(), len(n.Values), len(n.Values)))
	for i, item := range n.Values {
		if v.Type().Elem().Kind() == reflect.String {
			item = rejoinColonScalar(item)
		}
		if err := d.decodeValue(item, v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
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

// typeMismatchError returns the error for a value of another shape than its field: for example a
// list where the file needs a number. path is the path of the field.
func (d *File) typeMismatchError(node ast.Node, v reflect.Value, path string) error {
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
	path = cmp.Or(path, "a project file")
	return d.errorAt(at, path, fmt.Sprintf(": expected %s, %s", expectedYAMLShape(v.Type()), found))
}
