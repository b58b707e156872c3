package robots

import (
	"iter"
	"net/http"
	"slices"
	"strings"
)

// maxCategories is how many categories of one field are kept for a URL; a
// dozen are known.
const maxCategories = 64

// maxCategoryBytes is how long the name of a category may be, in bytes, as keys
// of a dictionary may (RFC 9651, section 3.2).
const maxCategoryBytes = 64

// HeaderUsageSignals returns what the header of an answer asks of the use of its
// content by Content-Usage, Content-Signal and tdm-reservation. Each field line
// is a statement: where they disagree the stricter one stays. Of a field that is
// not well formed counts what can be read.
func HeaderUsageSignals(h http.Header) UsageSignals {
	var found UsageSignals
	for _, name := range []string{"Content-Usage", "Content-Signal"} {
		var strictest strictestSignals
		for _, list := range h.Values(name) {
			strictest.add(parsePreferences(list, UsageSignal{Source: InHeader, Field: strings.ToLower(name)})...)
		}
		found = append(found, strictest.signals...)
	}
	var reserved strictestSignals
	for _, value := range h.Values(tdmReservationField) {
		if s, ok := ParseTDMReservation(InHeader, value, h.Get("tdm-policy")); ok {
			reserved.add(s)
		}
	}
	return append(found, reserved.signals...)
}

// parsePreferences reads "category=y, category=n", each as the signal as. A category named
// twice has the last value, as in a dictionary of RFC 9651, section 3.2.
func parsePreferences(list string, template UsageSignal) UsageSignals {
	var all UsageSignals
	for name, value := range dictionaryMembers(list) {
		if name == "" || len(name) > maxCategoryBytes {
			continue
		}
		all = slices.DeleteFunc(all, func(o UsageSignal) bool { return o.Category == name })
		if len(all) == maxCategories {
			continue
		}
		template.Category, template.Preference = strings.Clone(name), parsePreference(value)
		all = append(all, template)
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

// parsePreference reads what either field writes: y and n, or yes and no.
func parsePreference(value string) UsagePreferenceValue {
	switch strings.ToLower(value) {
	case "y", "yes":
		return UseAllowed
	case "n", "no":
		return UseDisallowed
	}
	return UseUnset
}
