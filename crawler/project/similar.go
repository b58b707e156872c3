package project

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// maxSimilarLength bounds the length in bytes of a text for which mostSimilar searches.
const maxSimilarLength = 64

// DidYouMean returns a question that continues the problem of an unknown value: which of the choices
// it misspells. It returns "" if the value resembles none.
func DidYouMean(value string, choices []string) string {
	if meant := mostSimilar(value, choices); meant != "" {
		return "; did you mean " + meant + "?"
	}
	return ""
}

// mostSimilar returns the candidate that text most probably misspells, or "" if none resembles it. A
// candidate resembles the text if at most a third of its letters, or one, must change.
func mostSimilar(text string, candidates []string) string {
	best, bestDistance := "", maxSimilarLength
	normalized := normalizedName(text)
	for _, c := range candidates {
		distance := editDistance(normalized, normalizedName(c))
		if distance < bestDistance && distance <= max(1, len(c)/3) && distance < len(c) {
			best, bestDistance = c, distance
		}
	}
	return best
}

// ignoredInNames removes - and _, which people confuse.
var ignoredInNames = strings.NewReplacer("-", "", "_", "")

// normalizedName returns name in lower case and without - and _.
func normalizedName(name string) string { return ignoredInNames.Replace(strings.ToLower(name)) }

// editDistance returns how many bytes must be inserted, deleted, replaced, or exchanged with their
// neighbour to make b from a (optimal string alignment). It returns maxSimilarLength if one of them
// is longer than that.
func editDistance(a, b string) int {
	if max(len(a), len(b)) > maxSimilarLength {
		return maxSimilarLength
	}
	// Each row has the distances of a prefix of a to all prefixes of b; three rows are kept.
	var rows [3][maxSimilarLength + 1]int
	for i := 0; i <= len(a); i++ {
		row, last, beforeLast := &rows[i%3], &rows[(i+2)%3], &rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			if i == 0 {
				row[j] = j
				continue
			}
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], beforeLast[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}

// similarField returns the path of the field that an unknown field most probably means, or "". The
// unknown field is in struct t at path. Its name may misspell a field of t, or be that of a field
// elsewhere in the file, such as delay for politeness.delay.
func similarField(t reflect.Type, path, name string) string {
	if meant := mostSimilar(name, yamlFieldNames(t)); meant != "" {
		return strings.TrimPrefix(path+"."+meant, ".")
	}
	var elsewhere []string
	for _, p := range allFieldPaths() {
		if p[strings.LastIndexByte(p, '.')+1:] == name {
			elsewhere = append(elsewhere, p)
		}
	}
	// Prefer the field with the fewest parents. Of two equal ones, neither is more probable.
	slices.SortStableFunc(elsewhere, func(a, b string) int { return cmp.Compare(fieldDepth(a), fieldDepth(b)) })
	if len(elsewhere) == 0 || len(elsewhere) > 1 && fieldDepth(elsewhere[0]) == fieldDepth(elsewhere[1]) {
		return ""
	}
	return elsewhere[0]
}

// fieldDepth returns the number of parents of the field at path.
func fieldDepth(path string) int { return strings.Count(path, ".") }

// allFieldPaths returns fieldPaths of a project.
var allFieldPaths = sync.OnceValue(func() []string { return fieldPaths(reflect.TypeFor[Project](), "") })

// fieldPaths returns the paths of the fields of struct t and of the structs in it. It leaves out
// those of the entries of maps, whose paths contain names.
func fieldPaths(t reflect.Type, path string) (paths []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name := yamlFieldName(f)
		if name == "" {
			continue
		}
		sub := strings.TrimPrefix(path+"."+name, ".")
		paths = append(paths, sub)
		if f.Type.Kind() == reflect.Struct {
			paths = append(paths, fieldPaths(f.Type, sub)...)
		}
	}
	return paths
}
