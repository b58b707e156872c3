package robots

import (
	"iter"
	"slices"
	"strings"
)

// splitPathAndPreferences cuts "[path] preferences" in two. Without a path the line speaks of the
// whole site.
func splitPathAndPreferences(value string) (path, list string) {
	if !beginsWithSlashOrStar(value) {
		return "/", value
	}
	path = value
	if i := strings.IndexAny(value, blankChars); i >= 0 {
		path = value[:i]
	}
	return path, value[len(path):]
}

// maxCategories is how many categories of one field are kept for a URL; a
// dozen are known.
const maxCategories = 64

// maxCategoryBytes is how long the name of a category may be, in bytes, as keys
// of a dictionary may (RFC 9651, section 3.2).
const maxCategoryBytes = 64

// A preference is what is wished of one category of use.
type preference struct {
	category string // in lower case
	wish     wish
}

// A wish is what is wished of a category. More is stricter.
type wish int8

const (
	wishUnset wish = iota // the value says neither
	wishAllowed
	wishDisallowed
)

// parsePreferences reads "category=y, category=n". A category named twice has the last
// value, as in a dictionary of RFC 9651, section 3.2.
func parsePreferences(list string) []preference {
	var all []preference
	for name, value := range dictionaryMembers(list) {
		if name == "" || len(name) > maxCategoryBytes {
			continue
		}
		all = slices.DeleteFunc(all, func(o preference) bool { return o.category == name })
		if len(all) < maxCategories {
			all = append(all, preference{strings.Clone(name), parseWish(value)})
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

// parseWish reads what Content-Usage and Content-Signal write: y and n, or yes and no.
func parseWish(value string) wish {
	switch strings.ToLower(value) {
	case "y", "yes":
		return wishAllowed
	case "n", "no":
		return wishDisallowed
	}
	return wishUnset
}
