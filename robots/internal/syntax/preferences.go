package syntax

import (
	"iter"
	"slices"
	"strings"
)

// SplitPathAndPreferences cuts "[path] preferences" in two. Without a path the line speaks of the
// whole site.
func SplitPathAndPreferences(value string) (path, list string) {
	if !BeginsWithSlashOrStar(value) {
		return "/", value
	}
	path = value
	if i := strings.IndexAny(value, BlankChars); i >= 0 {
		path = value[:i]
	}
	return path, value[len(path):]
}

// MaxCategories is how many categories of one field are kept for a URL; a
// dozen are known.
const MaxCategories = 64

// MaxCategoryBytes is how long the name of a category may be, in bytes, as keys
// of a dictionary may (RFC 9651, section 3.2).
const MaxCategoryBytes = 64

// A Preference is what a site asks about one category of use.
type Preference struct {
	Category string // in lower case
	Value    PreferenceValue
}

// A PreferenceValue is what a site asks about a category. More is stricter.
type PreferenceValue int8

const (
	PreferenceUnset PreferenceValue = iota // the value says neither
	PreferenceAllowed
	PreferenceDisallowed
)

// ParsePreferences reads "category=y, category=n". A category named twice has the last
// value, as in a dictionary of RFC 9651, section 3.2.
func ParsePreferences(list string) []Preference {
	var all []Preference
	for name, value := range dictionaryMembers(list) {
		if name == "" || len(name) > MaxCategoryBytes {
			continue
		}
		all = slices.DeleteFunc(all, func(o Preference) bool { return o.Category == name })
		if len(all) < MaxCategories {
			all = append(all, Preference{strings.Clone(name), parsePreferenceValue(value)})
		}
	}
	return all
}

// dictionaryMembers returns the keys of a dictionary (RFC 9651, section 3.2), in lower
// case, and their values, without parameters, of which none means anything yet.
// What stands in quotes or parentheses separates nothing, unless they are never
// closed: then every comma does, so that one slip does not take back what is
// asked after it.
func dictionaryMembers(list string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for closed := true; list != ""; {
			end := -1
			if closed {
				end, closed = dictionaryMemberEnd(list)
			}
			if !closed {
				end = strings.IndexByte(list, ',')
			}
			member, rest := list, ""
			if end >= 0 {
				member, rest = list[:end], list[end+1:]
			}
			if !yield(parseDictionaryMember(member)) {
				return
			}
			list = rest
		}
	}
}

// parseDictionaryMember returns the key and the value of a member.
func parseDictionaryMember(member string) (key, value string) {
	if end := strings.IndexAny(member, "=;"); end >= 0 {
		member, value = member[:end], member[end:]
	}
	value, isValue := strings.CutPrefix(value, "=")
	if !isValue {
		value = "" // there are parameters alone
	}
	value, _, _ = strings.Cut(value, ";")
	return strings.ToLower(trimBlanks(member)), trimBlanks(value)
}

// dictionaryMemberEnd returns where the first member of a list ends, -1 at its end, and
// whether all strings and inner lists in it are closed.
func dictionaryMemberEnd(list string) (end int, closed bool) {
	quoted, inner := false, false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(', c == ')':
			inner = c == '('
		case c == ',' && !inner:
			return i, true
		}
	}
	return -1, !quoted && !inner
}

// parsePreferenceValue reads what Content-Usage and Content-Signal write: y and n, or yes and no.
func parsePreferenceValue(value string) PreferenceValue {
	switch strings.ToLower(value) {
	case "y", "yes":
		return PreferenceAllowed
	case "n", "no":
		return PreferenceDisallowed
	}
	return PreferenceUnset
}
