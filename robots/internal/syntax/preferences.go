package syntax

import (
	"iter"
	"slices"
	"strings"
)

// SplitPathAndPreferences splits the value "[path] preferences". A value without a path applies to the
// whole site and gets the path "/".
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

// MaxCategories is how many categories of one field are kept for a URL. About a dozen categories are
// in use.
const MaxCategories = 64

// MaxCategoryBytes is the maximum length of the name of a category, in bytes: that of a dictionary
// key (RFC 9651, section 3.2).
const MaxCategoryBytes = 64

// A Preference is a site's statement about one category of use.
type Preference struct {
	Category string // in lower case
	Value    PreferenceValue
}

// A PreferenceValue says whether a site permits a category of use. Higher values are stricter.
type PreferenceValue int8

// The values of a preference.
const (
	PreferenceUnset      PreferenceValue = iota // neither y nor n
	PreferenceAllowed                           // y or yes
	PreferenceDisallowed                        // n or no
)

// ParsePreferences parses "category=y, category=n". If a category is repeated, its last value counts,
// as in a dictionary (RFC 9651, section 3.2). Names longer than MaxCategoryBytes and categories after
// the first MaxCategories are left out.
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

// dictionaryMembers returns an iterator over the keys of a dictionary (RFC 9651, section 3.2), in
// lower case, and their values. It drops parameters, because none is defined yet. Commas within
// quotes or parentheses do not separate members. If a quote or parenthesis is never closed, every
// comma separates members, so that one typo does not hide the preferences after it.
func dictionaryMembers(list string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		// closed is false once a quote or parenthesis in list is known to stay open.
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
		value = "" // the key has only parameters
	}
	value, _, _ = strings.Cut(value, ";")
	return strings.ToLower(trimBlanks(member)), trimBlanks(value)
}

// dictionaryMemberEnd returns the index of the comma after the first member of list, -1 if there is
// none, and reports whether all strings and inner lists in that member are closed.
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

// parsePreferenceValue parses the values of Content-Usage (y and n) and Content-Signal (yes and no).
func parsePreferenceValue(value string) PreferenceValue {
	switch strings.ToLower(value) {
	case "y", "yes":
		return PreferenceAllowed
	case "n", "no":
		return PreferenceDisallowed
	}
	return PreferenceUnset
}
