package project

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A field is named by its path in the project file, as in politeness.delay.
// The struct tags of Project are the only list of names: file, flags and
// messages all go through here.

// fieldByYAMLName returns the field of struct v with that name in the file, and false
// if there is none.
func fieldByYAMLName(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if yamlFieldName(v.Type().Field(i)) == name {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// yamlFieldNames returns the names of the fields of a struct, in its order.
func yamlFieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = yamlFieldName(t.Field(i))
	}
	return names
}

// yamlFieldName returns the name of a field in the file.
func yamlFieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

// fieldAt returns the field of p at path, settable. The paths are this
// package's own.
func (p *Project) fieldAt(path string) reflect.Value {
	v := reflect.ValueOf(p).Elem()
	for name := range strings.SplitSeq(path, ".") {
		v, _ = fieldByYAMLName(v, name)
	}
	return v
}

// setScalarFromText reads text as a value of v's type.
func setScalarFromText(v reflect.Value, text string) error {
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is neither true nor false", text)
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

// expectedYAMLShape says what a field of type t looks like in the file.
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

// equalFieldValues reports whether two fields say the same; an empty list or map is none.
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

// A FilePathUse says what decorum does with the files that a field of a project names.
type FilePathUse int

const (
	StateDirectory FilePathUse = iota // keeps the state; projects of a daemon cannot set it
	InputFile                         // is read; in a daemon, relative to the folder of project files
	OutputPath                        // is written; in a daemon, relative to the project's directory
)

// A FilePathField is a field of the project file that names a file or a directory.
type FilePathField struct {
	name string
	Use  FilePathUse
	// valuePointers returns pointers to the field's values. It copies a list first, since other
	// Projects may share it.
	valuePointers func(*Project) []*string
}

// filePathFields lists all fields of a Project that name files. It decides which of them
// the daemon confines for reading and for writing.
var filePathFields = []FilePathField{
	{"seed_files", InputFile, func(p *Project) []*string { return pointersToClonedItems(&p.SeedFiles) }},
	{"agent.signature.keys", InputFile, func(p *Project) []*string { return pointersToClonedItems(&p.Agent.Signature.KeyFiles) }},
	{"store.path", StateDirectory, func(p *Project) []*string { return []*string{&p.Store.Path} }},
	{"store.redis.password_file", InputFile, func(p *Project) []*string { return []*string{&p.Store.Redis.PasswordFile} }},
	{"store.redis.ca_file", InputFile, func(p *Project) []*string { return []*string{&p.Store.Redis.CAFile} }},
	{"output.jsonl", OutputPath, func(p *Project) []*string { return []*string{&p.Output.JSONL} }},
	{"output.warc", OutputPath, func(p *Project) []*string { return []*string{&p.Output.WARCDir} }},
	{"output.ledger_key", InputFile, func(p *Project) []*string { return []*string{&p.Output.LedgerKeyFile} }},
}

// pointersToClonedItems copies a list, and returns pointers to the items of the copy.
func pointersToClonedItems(list *[]string) []*string {
	*list = slices.Clone(*list)
	items := make([]*string, len(*list))
	for i := range *list {
		items[i] = &(*list)[i]
	}
	return items
}

// ForEachFilePath calls do with every path in p, and stops at the first error. It skips empty
// fields and standard output ("-").
func (p *Project) ForEachFilePath(do func(f FilePathField, field string, path *string) *FieldProblem) *FieldProblem {
	for _, f := range filePathFields {
		for i, path := range f.valuePointers(p) {
			if *path == "" || *path == "-" && f.Use == OutputPath {
				continue
			}
			field := f.name
			if f.isList() {
				field = indexedFieldName(f.name, i)
			}
			if problem := do(f, field, path); problem != nil {
				return problem
			}
		}
	}
	return nil
}

// isList reports whether the field is a list of paths.
func (f FilePathField) isList() bool {
	return f.name == "seed_files" || f.name == "agent.signature.keys"
}
