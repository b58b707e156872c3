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

// decode reads the draft's text into its project. The goccy parser finds the
// words and their places; what they mean is decided here, so that every
// mistake is told in the words of the project file and not in those of Go.
func (d *File) decode() error {
	tokens, exceeded := yamllimit.Tokenize(d.Text, "anchors, aliases and tags have no place in a project file; write the value itself")
	if exceeded != nil {
		return d.errorAt(textPosition{exceeded.Line, exceeded.Column}, "", exceeded.Problem)
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return d.syntaxError(err)
	}
	if len(file.Docs) > 1 {
		return d.errorAt(yamlTokenPosition(file.Docs[1].Start), "", "a project file holds one document; here a second begins")
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil // nothing but comments: all defaults
	}
	return d.decodeValue(file.Docs[0].Body, reflect.ValueOf(&d.Project).Elem(), "")
}

// syntaxError returns a parser's error in the project file's form.
func (d *File) syntaxError(err error) error {
	if at, ok := errors.AsType[yaml.Error](err); ok && at.GetToken() != nil {
		return d.errorAt(yamlTokenPosition(at.GetToken()), "", at.GetMessage())
	}
	return d.errorAt(textPosition{}, "", "it is not YAML")
}

func yamlTokenPosition(tk *token.Token) textPosition {
	if tk == nil {
		return textPosition{1, 1}
	}
	return textPosition{tk.Position.Line, tk.Position.Column}
}

// decodeValue reads node into v, the field at path.
func (d *File) decodeValue(node ast.Node, v reflect.Value, path string) error {
	at := yamlTokenPosition(node.GetToken())
	switch node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return d.errorAt(at, "", "anchors, aliases and tags have no place in a project file; write the value itself")
	case *ast.NullNode:
		if key, ok := d.positions[path]; ok {
			at = key
		}
		return d.errorAt(at, path, " has no value: give it one, or delete the line")
	}
	if v.Kind() == reflect.Pointer { // a field that may be left unsaid
		v.Set(reflect.New(v.Type().Elem()))
		return d.decodeValue(node, v.Elem(), path)
	}
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

func scalarText(node ast.Node) string {
	if block, ok := node.(*ast.LiteralNode); ok {
		return block.Value.Value
	}
	return node.GetToken().Value
}

// decodeMapping reads the fields of a room, or the entries of a map.
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

// decodeList reads the items of a list.
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

// rejoinColonScalar returns an item of a list as YAML means it: a colon that no blank follows
// is part of a plain value, as in host:80 (YAML 1.2.2, 7.3.3). Within braces the
// parser takes it for a field's.
func rejoinColonScalar(item ast.Node) ast.Node {
	fields, ok := item.(*ast.MappingNode)
	if !ok || len(fields.Values) != 1 {
		return item
	}
	pair := fields.Values[0]
	key, value := pair.Key.GetToken(), pair.Value.GetToken()
	if _, ok := pair.Value.(ast.ScalarNode); !ok || value.Indicator == token.QuotedScalarIndicator || !areAdjacentTokens(key, pair.Start) || !areAdjacentTokens(pair.Start, value) {
		return item
	}
	joined := *key
	joined.Value += ":" + value.Value
	return ast.String(&joined)
}

// areAdjacentTokens reports whether nothing stands between two tokens, no quote either.
func areAdjacentTokens(before, after *token.Token) bool {
	return after.Position.Line == before.Position.Line && after.Position.Column == before.Position.Column+utf8.RuneCountInString(before.Value)
}

// typeMismatchError refuses a value of another shape than its field's.
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
