package escapedhtml

import (
	"fmt"
	"reflect"
	"slices"
	"text/template/parse"
)

// evaluate returns the value of a pipeline; that of nil is the zero Value.
func (e *execution) evaluate(dot reflect.Value, p *parse.PipeNode) (v reflect.Value, err error) {
	if p == nil {
		return reflect.Value{}, nil
	}
	for i, c := range p.Cmds {
		operands := c.Args
		if name, ok := operands[0].(*parse.IdentifierNode); ok {
			var piped []reflect.Value
			if i > 0 {
				piped = []reflect.Value{v}
			}
			v, err = e.call(dot, name.Ident, operands[1:], piped)
		} else if i > 0 || len(operands) > 1 {
			err = fmt.Errorf("%s is no function", operands[0])
		} else {
			v, err = e.operand(dot, operands[0])
		}
		if err != nil {
			return reflect.Value{}, fmt.Errorf("{{%s}}: %w", p, err)
		}
	}
	return v, nil
}

// operand returns the value of an operand.
func (e *execution) operand(dot reflect.Value, node parse.Node) (reflect.Value, error) {
	switch n := node.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.FieldNode:
		return fieldOf(dot, n.Ident)
	case *parse.VariableNode:
		for _, v := range slices.Backward(e.variables) {
			if v.name == n.Ident[0] {
				return fieldOf(v.value, n.Ident[1:])
			}
		}
	case *parse.ChainNode:
		v, err := e.operand(dot, n.Node)
		if err != nil {
			return v, err
		}
		return fieldOf(v, n.Field)
	case *parse.PipeNode:
		return e.evaluate(dot, n)
	case *parse.IdentifierNode:
		return e.call(dot, n.Ident, nil, nil)
	case *parse.StringNode:
		return reflect.ValueOf(n.Text), nil
	case *parse.BoolNode:
		return reflect.ValueOf(n.True), nil
	case *parse.NumberNode:
		if n.IsInt {
			return reflect.ValueOf(int(n.Int64)), nil
		}
	}
	return reflect.Value{}, fmt.Errorf("%s: this kind of operand is not supported", node)
}

// call returns the result of a function. The last arguments are values.
func (e *execution) call(dot reflect.Value, name string, operands []parse.Node, values []reflect.Value) (
	reflect.Value, error) {
	args := make([]reflect.Value, 0, len(operands)+len(values))
	for i := range len(operands) + len(values) {
		var v reflect.Value
		var err error
		if i >= len(operands) {
			v = values[i-len(operands)]
		} else if v, err = e.operand(dot, operands[i]); err != nil {
			return v, err
		}
		if name == "and" && !isTrue(v) || name == "or" && isTrue(v) {
			return v, nil // the operands that follow are not evaluated
		}
		args = append(args, withoutInterface(v))
	}
	if escape := escapers[name]; escape != nil && len(args) == 1 {
		return reflect.ValueOf(escape(textOf(args[0]))), nil
	}
	if builtin := builtins[name]; builtin != nil {
		return builtin(args)
	}
	if (name == "and" || name == "or") && len(args) > 0 {
		return args[len(args)-1], nil
	}
	return callFunc(e.templates.funcs[name], args)
}

// callFunc calls a function of the caller of Parse.
func callFunc(function any, args []reflect.Value) (reflect.Value, error) {
	f := reflect.ValueOf(function)
	if f.Kind() != reflect.Func || f.Type().IsVariadic() || f.Type().NumIn() != len(args) || f.Type().NumOut() != 1 {
		return reflect.Value{}, fmt.Errorf("the function is a %T: it cannot be called with %d arguments", function,
			len(args))
	}
	for i, v := range args {
		switch want := f.Type().In(i); {
		case !v.IsValid() && want.Kind() == reflect.Interface:
			args[i] = reflect.Zero(want)
		case !v.IsValid() || !v.Type().AssignableTo(want):
			return reflect.Value{}, fmt.Errorf("argument %d is %v, want a value of type %s", i+1, v, want)
		}
	}
	return f.Call(args)[0], nil
}

// fieldOf returns a field of a field … of v. Each name is that of an exported field, of a key of a map, or,
// for types with this method, IsZero or IsValid.
func fieldOf(v reflect.Value, names []string) (reflect.Value, error) {
	for _, name := range names {
		next := methodResult(v, name)
		switch v = dereferenced(v); {
		case next.IsValid():
		case v.Kind() == reflect.Struct:
			if f, ok := v.Type().FieldByName(name); ok && f.IsExported() {
				next, _ = v.FieldByIndexErr(f.Index)
			}
		case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
			next = v.MapIndex(reflect.ValueOf(name).Convert(v.Type().Key()))
		}
		if !next.IsValid() {
			return reflect.Value{}, fmt.Errorf("a value of kind %s has no %s", v.Kind(), name)
		}
		v = next
	}
	return v, nil
}

// methodResult returns the result of the method IsZero or IsValid of v, or the zero Value if it does not have
// the method.
func methodResult(v reflect.Value, name string) reflect.Value {
	if name != "IsZero" && name != "IsValid" || !dereferenced(v).IsValid() || !v.CanInterface() {
		return reflect.Value{} // on a nil pointer, the method of the value to which it points would panic
	}
	switch of := v.Interface().(type) {
	case interface{ IsZero() bool }:
		if name == "IsZero" {
			return reflect.ValueOf(of.IsZero())
		}
	case interface{ IsValid() bool }:
		if name == "IsValid" {
			return reflect.ValueOf(of.IsValid())
		}
	}
	return reflect.Value{}
}
