package escapedhtml

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// withoutInterface returns the value in an interface; that of nil is the zero Value.
func withoutInterface(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Interface {
		return v.Elem()
	}
	return v
}

// dereferenced returns the value to which v points, or v.
func dereferenced(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// isTrue reports whether v is neither false, 0, empty nor nil.
func isTrue(v reflect.Value) bool {
	v = withoutInterface(v)
	switch v.Kind() {
	case reflect.Invalid:
		return false
	case reflect.Map, reflect.Slice, reflect.Array, reflect.String:
		return v.Len() > 0
	case reflect.Struct:
		return true
	}
	return !v.IsZero()
}

// textOf returns v as fmt prints it; nil is empty.
func textOf(v reflect.Value) string {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		if _, ok := v.Interface().(fmt.Stringer); ok && !v.IsNil() {
			break
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return ""
	}
	return fmt.Sprint(v.Interface())
}

// entriesOf returns the indexes and elements of a slice, or the keys, in order, and elements of a map. A nil
// value has none.
func entriesOf(v reflect.Value) (keys, values []reflect.Value, err error) {
	switch v = dereferenced(v); {
	case !v.IsValid():
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		for i := range v.Len() {
			keys, values = append(keys, reflect.ValueOf(i)), append(values, v.Index(i))
		}
	case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
		keys = v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, key := range keys {
			values = append(values, v.MapIndex(key))
		}
	default:
		err = fmt.Errorf("a value of type %s has no elements", v.Type())
	}
	return keys, values, err
}

// builtins holds the functions that every template may call, except and and or.
var builtins = map[string]func(args []reflect.Value) (reflect.Value, error){
	"not": func(args []reflect.Value) (reflect.Value, error) {
		if len(args) != 1 {
			return reflect.Value{}, errors.New("not takes one argument")
		}
		return reflect.ValueOf(!isTrue(args[0])), nil
	},
	"len": func(args []reflect.Value) (reflect.Value, error) {
		if len(args) == 1 {
			switch v := dereferenced(args[0]); v.Kind() {
			case reflect.Map, reflect.Slice, reflect.Array, reflect.String:
				return reflect.ValueOf(v.Len()), nil
			}
		}
		return reflect.Value{}, errors.New("len takes one argument, which has elements")
	},
	"printf": func(args []reflect.Value) (reflect.Value, error) {
		if len(args) == 0 || args[0].Kind() != reflect.String {
			return reflect.Value{}, errors.New("printf takes a format first")
		}
		var values []any
		for _, v := range args[1:] {
			if !v.IsValid() {
				return reflect.Value{}, errors.New("printf takes no nil")
			}
			values = append(values, v.Interface())
		}
		return reflect.ValueOf(fmt.Sprintf(args[0].String(), values...)), nil
	},
	"eq": comparison(func(order int) bool { return order == 0 }),
	"ne": comparison(func(order int) bool { return order != 0 }),
	"lt": comparison(func(order int) bool { return order < 0 }),
	"le": comparison(func(order int) bool { return order <= 0 }),
	"gt": comparison(func(order int) bool { return order > 0 }),
	"ge": comparison(func(order int) bool { return order >= 0 }),
}

// comparison returns a function that compares two strings, or two integers, of any type.
func comparison(holds func(order int) bool) func([]reflect.Value) (reflect.Value, error) {
	return func(args []reflect.Value) (reflect.Value, error) {
		switch {
		case len(args) != 2:
			return reflect.Value{}, fmt.Errorf("a comparison of %d values, want 2", len(args))
		case args[0].Kind() == reflect.String && args[1].Kind() == reflect.String:
			return reflect.ValueOf(holds(cmp.Compare(args[0].String(), args[1].String()))), nil
		case args[0].CanInt() && args[1].CanInt():
			return reflect.ValueOf(holds(cmp.Compare(args[0].Int(), args[1].Int()))), nil
		}
		return reflect.Value{}, fmt.Errorf("values of kinds %s and %s are not compared", args[0].Kind(), args[1].Kind())
	}
}
