package daemon

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// decode reads the draft's text into its project. The goccy parser finds the
// words and their places; what they mean is decided here, so that every
// mistake is told in the words of the project file and not in those of Go.
func (d *draft) decode() error {
	tokens, over := tokenize(d.text, "anchors, aliases and tags have no place in a project file; write the value itself")
	if over != nil {
		return d.refuse(over.at, "", over.problem)
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return d.syntax(err)
	}
	if len(file.Docs) > 1 {
		return d.refuse(placeOf(file.Docs[1].Start), "", "a project file holds one document; here a second begins")
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil // nothing but comments: all defaults
	}
	return d.value(file.Docs[0].Body, reflect.ValueOf(&d.Project).Elem(), "")
}

// tokenize returns the tokens of a YAML text, or an error if the text exceeds the
// limits within which the parser is safe. aliases is the error text for an anchor, an
// alias or a tag.
func tokenize(text, aliases string) (token.Tokens, *excess) {
	if over := checkYAMLText(text); over != nil {
		return nil, over
	}
	tokens := lexer.Tokenize(text)
	return tokens, checkYAMLTokens(tokens, aliases)
}

// syntax returns a parser's error in the project file's form.
func (d *draft) syntax(err error) error {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		return d.refuse(placeOf(at.GetToken()), "", at.GetMessage())
	}
	return d.refuse(place{}, "", "it is not YAML")
}

func placeOf(tk *token.Token) place {
	if tk == nil {
		return place{1, 1}
	}
	return place{tk.Position.Line, tk.Position.Column}
}

// value reads node into v, the field at path.
func (d *draft) value(node ast.Node, v reflect.Value, path string) error {
	at := placeOf(node.GetToken())
	switch node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return d.refuse(at, "", "anchors, aliases and tags have no place in a project file; write the value itself")
	case *ast.NullNode:
		if key, ok := d.at[path]; ok {
			at = key
		}
		return d.refuse(at, path, " has no value: give it one, or delete the line")
	}
	if v.Kind() == reflect.Pointer { // a field that may be left unsaid
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(node, v.Elem(), path)
	}
	switch n := node.(type) {
	case ast.MapNode:
		return d.mapping(n, v, path)
	case *ast.SequenceNode:
		return d.list(n, v, path)
	}
	d.at[path] = at
	if v.Kind() == reflect.Struct {
		return d.mismatch(node, v, path)
	}
	if err := setScalar(v, scalarText(node)); err != nil {
		return d.refuse(at, path, ": "+err.Error())
	}
	return nil
}

func scalarText(node ast.Node) string {
	if block, ok := node.(*ast.LiteralNode); ok {
		return block.Value.Value
	}
	return node.GetToken().Value
}

// mapping reads the fields of a room, or the entries of a map.
func (d *draft) mapping(n ast.MapNode, v reflect.Value, path string) error {
	if v.Kind() != reflect.Struct && v.Kind() != reflect.Map {
		return d.mismatch(n.(ast.Node), v, path)
	}
	if v.Kind() == reflect.Map {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for it := n.MapRange(); it.Next(); {
		key, name := it.Key(), scalarText(it.Key())
		sub := strings.TrimPrefix(path+"."+name, ".")
		d.at[sub] = placeOf(key.GetToken())
		if v.Kind() == reflect.Map {
			entry := reflect.New(v.Type().Elem()).Elem()
			if err := d.value(it.Value(), entry, sub); err != nil {
				return err
			}
			v.SetMapIndex(reflect.ValueOf(name), entry)
			continue
		}
		field, ok := fieldOf(v, name)
		if !ok {
			return d.refuse(d.at[sub], "",
				fmt.Sprintf("unknown field %q; expected one of %s", sub, strings.Join(fieldNames(v.Type()), ", ")))
		}
		if err := d.value(it.Value(), field, sub); err != nil {
			return err
		}
	}
	return nil
}

// list reads the items of a list.
func (d *draft) list(n *ast.SequenceNode, v reflect.Value, path string) error {
	if v.Kind() != reflect.Slice {
		return d.mismatch(n, v, path)
	}
	d.at[path] = placeOf(n.GetToken())
	v.Set(reflect.MakeSlice(v.Type(), len(n.Values), len(n.Values)))
	for i, item := range n.Values {
		if v.Type().Elem().Kind() == reflect.String {
			item = unsplit(item)
		}
		if err := d.value(item, v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

// unsplit returns an item of a list as YAML means it: a colon that no blank follows
// is part of a plain value, as in host:80 (YAML 1.2.2, 7.3.3). Within braces the
// parser takes it for a field's.
func unsplit(item ast.Node) ast.Node {
	fields, ok := item.(*ast.MappingNode)
	if !ok || len(fields.Values) != 1 {
		return item
	}
	pair := fields.Values[0]
	key, value := pair.Key.GetToken(), pair.Value.GetToken()
	if _, ok := pair.Value.(ast.ScalarNode); !ok || value.Indicator == token.QuotedScalarIndicator || !follows(key, pair.Start) || !follows(pair.Start, value) {
		return item
	}
	whole := *key
	whole.Value += ":" + value.Value
	return ast.String(&whole)
}

// follows reports whether nothing stands between two tokens, no quote either.
func follows(before, after *token.Token) bool {
	return after.Position.Line == before.Position.Line && after.Position.Column == before.Position.Column+utf8.RuneCountInString(before.Value)
}

// mismatch refuses a value of another shape than its field's.
func (d *draft) mismatch(node ast.Node, v reflect.Value, path string) error {
	at := placeOf(node.GetToken())
	found := fmt.Sprintf("found %q", scalarText(node))
	switch n := node.(type) {
	case ast.MapNode:
		found = "found fields"
		if it := n.MapRange(); it.Next() {
			at = placeOf(it.Key().GetToken())
			found = fmt.Sprintf("found the field %q", scalarText(it.Key()))
		}
	case *ast.SequenceNode:
		found = "found a list"
	}
	if path == "" {
		path = "a project file"
	}
	return d.refuse(at, path, fmt.Sprintf(": expected %s, %s", expected(v.Type()), found))
}
