package project

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/decorum-crawler/decorum/internal/plaintext"
)

// Differences describes the fields that have another value in q than in p, in the order of the project file,
// as in "politeness.delay was 1s, is 2s". It shortens long values, leaves out those of headers and other maps,
// and hides passwords of URLs.
func (p *Project) Differences(q Project) []string {
	return fieldDifferences("", reflect.ValueOf(*p), reflect.ValueOf(q))
}

// fieldDifferences returns the Differences of the structs a and b, which are at path.
func fieldDifferences(path string, a, b reflect.Value) (texts []string) {
	for i := range a.NumField() {
		field := path + yamlFieldName(a.Type().Field(i))
		was, is := a.Field(i), b.Field(i)
		switch {
		case equalFieldValues(was, is):
		case was.Kind() == reflect.Struct && was.NumField() > 0 && yamlFieldName(was.Type().Field(0)) != "":
			texts = append(texts, fieldDifferences(field+".", was, is)...)
		default:
			wasText, wasShown := fieldValueText(was)
			isText, isShown := fieldValueText(is)
			if wasShown && isShown && wasText != isText {
				texts = append(texts, fmt.Sprintf("%s was %s, is %s", field, wasText, isText))
			} else {
				texts = append(texts, field+" has changed")
			}
		}
	}
	return texts
}

// fieldValueText returns the value of a field for people, and whether it may be shown.
func fieldValueText(v reflect.Value) (string, bool) {
	var text string
	switch value := v.Interface().(type) {
	case []string:
		text = strings.Join(value, " ")
	default:
		switch v.Kind() {
		case reflect.Map, reflect.Slice, reflect.Struct, reflect.Pointer:
			return "", false
		}
		text = fmt.Sprint(value)
	}
	if text == "" {
		return "empty", true
	}
	text = credentialsPattern.ReplaceAllStringFunc(text, maskCredentials)
	return plaintext.ReplaceControlChars(plaintext.Truncate(text)), true
}
