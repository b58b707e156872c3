package escapedhtml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"text/template/parse"
)

// Templates holds escaped templates by name, and the functions that they call.
type Templates struct {
	trees map[string]*parse.Tree
	funcs map[string]any
}

// Parse parses escaped templates. A function of funcs takes a fixed number of arguments and returns one
// value. A template of a later source replaces an earlier one of the same name.
func Parse(funcs map[string]any, sources ...string) (Templates, error) {
	t := Templates{map[string]*parse.Tree{}, funcs}
	known := map[string]any{"and": true, "or": true}
	for name := range builtins {
		known[name] = true
	}
	for name := range escapers {
		known[name] = true
	}
	for _, source := range sources {
		trees, err := parse.Parse("escaped templates", source, "", "", funcs, known)
		if err != nil {
			return Templates{}, err
		}
		maps.Copy(t.trees, trees)
	}
	return t, nil
}

// Execute executes a template with data and writes the result to w. If it fails, it writes nothing.
func (t Templates) Execute(w io.Writer, name string, data any) error {
	e := execution{templates: t}
	if err := e.executeTemplate(name, reflect.ValueOf(data)); err != nil {
		return err
	}
	_, err := w.Write(e.out.Bytes())
	return err
}

// maxDepth is how deeply templates may call each other.
const maxDepth = 100

// An execution is one call of Execute.
type execution struct {
	templates Templates
	out       bytes.Buffer
	variables []variable // of the present template, the innermost last
	depth     int        // of calls of templates
}

// A variable is a variable of a template, with its name as $name.
type variable struct {
	name  string
	value reflect.Value
}

// The results of the nodes break and continue.
var errBreak, errContinue = errors.New("break outside range"), errors.New("continue outside range")

// executeTemplate executes a template with variables of its own.
func (e *execution) executeTemplate(name string, dot reflect.Value) error {
	tree := e.templates.trees[name]
	if tree == nil {
		return fmt.Errorf("template %q is not defined", name)
	}
	if e.depth++; e.depth > maxDepth {
		return fmt.Errorf("template %q: more than %d templates call each other", name, maxDepth)
	}
	callers := e.variables
	e.variables = []variable{{"$", dot}}
	if err := e.walk(dot, tree.Root); err != nil {
		return fmt.Errorf("template %q: %w", name, err)
	}
	e.variables = callers
	e.depth--
	return nil
}

// walk executes a node.
func (e *execution) walk(dot reflect.Value, node parse.Node) error {
	switch n := node.(type) {
	case *parse.TextNode:
		e.out.Write(n.Text)
	case *parse.ListNode:
		for _, child := range n.Nodes {
			if err := e.walk(dot, child); err != nil {
				return err
			}
		}
	case *parse.ActionNode:
		v, err := e.declare(dot, n.Pipe)
		if err == nil && len(n.Pipe.Decl) == 0 {
			e.out.WriteString(textOf(v))
		}
		return err
	case *parse.IfNode:
		return e.executeIfOrWith(dot, &n.BranchNode)
	case *parse.WithNode:
		return e.executeIfOrWith(dot, &n.BranchNode)
	case *parse.RangeNode:
		return e.executeRange(dot, &n.BranchNode)
	case *parse.TemplateNode:
		v, err := e.evaluate(dot, n.Pipe)
		if err != nil {
			return err
		}
		return e.executeTemplate(n.Name, v)
	case *parse.BreakNode:
		return errBreak
	case *parse.ContinueNode:
		return errContinue
	default:
		return fmt.Errorf("%s: this kind of action is not supported", node)
	}
	return nil
}

// executeIfOrWith executes one of the lists of an if or with.
func (e *execution) executeIfOrWith(dot reflect.Value, n *parse.BranchNode) error {
	defer e.dropVariables(len(e.variables))
	v, err := e.declare(dot, n.Pipe)
	switch {
	case err != nil:
		return err
	case isTrue(v) && n.NodeType == parse.NodeWith:
		return e.walk(v, n.List)
	case isTrue(v):
		return e.walk(dot, n.List)
	case n.ElseList != nil:
		return e.walk(dot, n.ElseList)
	}
	return nil
}

// executeRange executes the list of a range for each element, or its else list if there is none.
func (e *execution) executeRange(dot reflect.Value, n *parse.BranchNode) error {
	elements, err := e.evaluate(dot, n.Pipe)
	if err != nil {
		return err
	}
	keys, values, err := entriesOf(elements)
	if err != nil {
		return fmt.Errorf("{{range %s}}: %w", n.Pipe, err)
	}
	if len(values) == 0 && n.ElseList != nil {
		return e.walk(dot, n.ElseList)
	}
	defer e.dropVariables(len(e.variables))
	outer := len(e.variables)
	for i, v := range values {
		e.dropVariables(outer)
		switch names := n.Pipe.Decl; len(names) {
		case 1:
			e.addVariable(names[0], v)
		case 2:
			e.addVariable(names[0], keys[i])
			e.addVariable(names[1], v)
		}
		if err := e.walk(v, n.List); errors.Is(err, errBreak) {
			break
		} else if err != nil && !errors.Is(err, errContinue) {
			return err
		}
	}
	return nil
}

func (e *execution) addVariable(n *parse.VariableNode, v reflect.Value) {
	e.variables = append(e.variables, variable{n.Ident[0], v})
}

// dropVariables drops all but the first n variables.
func (e *execution) dropVariables(n int) { e.variables = e.variables[:n] }

// declare evaluates a pipeline, and declares or sets its variables.
func (e *execution) declare(dot reflect.Value, p *parse.PipeNode) (reflect.Value, error) {
	v, err := e.evaluate(dot, p)
	if err != nil {
		return v, err
	}
	for _, n := range p.Decl {
		if !p.IsAssign {
			e.addVariable(n, v)
			continue
		}
		for i := len(e.variables) - 1; i >= 0; i-- {
			if e.variables[i].name == n.Ident[0] {
				e.variables[i].value = v
				break
			}
		}
	}
	return v, nil
}
