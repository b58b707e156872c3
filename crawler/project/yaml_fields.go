package project

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// A field's name is its path in the project file, as in politeness.delay. The struct tags of Project
// are the only list of these names: file, flags and messages use them through this file.

// fieldByYAMLName returns the field of struct v with that name in the project file, and whether it
// exists.
func fieldByYAMLName(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if yamlFieldName(v.Type().Field(i)) == name {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// yamlFieldNames returns the names of a struct's fields in the project file, in the struct's order.
func yamlFieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = yamlFieldName(t.Field(i))
	}
	return names
}

// yamlFieldName returns the name of a field in the project file.
func yamlFieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

// fieldAt returns the settable field of p at path. The path must exist: callers pass constants.
func (p *Project) fieldAt(path string) reflect.Value {
	v := reflect.ValueOf(p).Elem()
	for name := range strings.SplitSeq(path, ".") {
		v, _ = fieldByYAMLName(v, name)
	}
	return v
}

// setScalarFromText parses text as a value of v's type and sets v to it.
func setScalarFromText(v reflect.Value, text string) error {
	// Durations, sizes and dates parse themselves.
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			meant := map[string]string{"yes": "true", "on": "true", "no": "false", "off": "false"}
			return fmt.Errorf("%q is neither true nor false%s", text,
				DidYouMean(cmp.Or(meant[strings.ToLower(text)], text), []string{"true", "false"}))
		}
		v.SetBool(text == "true")
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		v.SetInt(int64(n))
	case reflect.Float64:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		v.SetFloat(x)
	default:
		return fmt.Errorf("expected %s, found the text %q", expectedYAMLShape(v.Type()), text)
	}
	return nil
}

// expectedYAMLShape describes the YAML of a field of type t, for error messages.
func expectedYAMLShape(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct:
		return "fields (" + strings.Join(yamlFieldNames(t), ", ") + ")"
	case reflect.Map:
		return "names, each with its own value"
	case reflect.Slice:
		return "a list, such as [a, b]"
	}
	return "a single value"
}

// equalFieldValues reports whether two fields have the same value. An empty list or map equals nil.
func equalFieldValues(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if !equalFieldValues(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Map:
		if a.Len() == 0 && b.Len() == 0 {
			return true
		}
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}
