package aiuse

import (
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/match"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// Rules are the preferences of one robots.txt about the use of content by one agent. They are
// immutable and safe for concurrent use. Nil Rules have no preferences.
type Rules struct {
	byField [len(signalFields)]usageRules // in the order of signalFields
}

// signalFields are the fields with preferences about the use of content.
var signalFields = [...]string{"content-usage", "content-signal"}

// Compile compiles the preferences of a file for an agent, nil if it has none.
func Compile(f *robots.File, a robots.Agent) *Rules {
	lines := f.LinesFor(a, signalFields[:]...)
	if len(lines) == 0 {
		return nil
	}
	r := &Rules{}
	for i, field := range signalFields {
		r.byField[i] = newUsageRules(lines, field)
	}
	return r
}

// SignalsForURL returns the preferences for u. It does not interpret them: the user of the content
// decides what a category means and what a missing category implies.
//
// For each of the two fields separately, the longest matching path counts, as with rules. If several
// lines have that path, all of them count, and a category that one of them disallows is disallowed.
// The time is linear in the number of different paths in the file, whatever the number of lines.
func (r *Rules) SignalsForURL(u decorum.URL) Signals {
	if r == nil {
		return nil
	}
	var found Signals
	for i, field := range signalFields {
		found = append(found, r.byField[i].signalsForPath(u.PathAndQuery(), Signal{Source: InRobots, Field: field})...)
	}
	slices.SortStableFunc(found, func(a, b Signal) int { return a.Line - b.Line })
	return found
}

// usageRules are the preferences in the lines of one field, one usageRule for each different path, the
// longest path first. Repeated lines therefore do not make SignalsForURL slower.
type usageRules []usageRule

// A usageRule contains the preferences of all lines with one path.
type usageRule struct {
	requiredBigrams match.BigramSet // the pairs of bytes that occur in every path that pattern matches
	pattern         match.Pattern
	preferences     []categoryPreference
}

// A categoryPreference is a Signal without Source and Field, in compact form.
type categoryPreference struct {
	category   string
	line       int32
	strictness int8 // the index of the preference in preferencesByStrictness
}

// newUsageRules compiles those of lines that have the field.
func newUsageRules(lines []robots.Line, field string) usageRules {
	var all usageRules
	var strictest []strictestSignals // parallel to all
	index := map[string]int{}        // the index in all, by Pattern.Key
	names := map[string]string{}     // one copy of each category name
	// Merge the preferences of lines with the same path.
	for _, l := range lines {
		if l.Field != field {
			continue
		}
		path, list := syntax.SplitPathAndPreferences(l.Value)
		p := match.CompilePattern(strings.Clone(path))
		key := p.Key()
		i, known := index[key]
		if !known {
			i, index[key] = len(all), len(all)
			all, strictest = append(all, usageRule{requiredBigrams: p.Bigrams(), pattern: p}),
				append(strictest, strictestSignals{})
		}
		strictest[i].add(signalsOfList(list, Signal{Line: l.Number})...)
	}
	for i := range all {
		all[i].setPreferences(strictest[i].signals, names)
	}
	slices.SortStableFunc(all, func(a, b usageRule) int { return b.pattern.Length - a.pattern.Length })
	return all
}

// setPreferences stores signals in compact form. names contains one copy of each category name, which
// all rules share.
func (s *usageRule) setPreferences(signals Signals, names map[string]string) {
	s.preferences = make([]categoryPreference, len(signals))
	for i, a := range signals {
		name, known := names[a.Category]
		if !known {
			name, names[a.Category] = a.Category, a.Category
		}
		s.preferences[i] = categoryPreference{name, int32(a.Line), int8(a.Preference.strictness())}
	}
}

// signalsForPath returns the preferences for a path, each with Source and Field of template: those of
// the longest matching pattern, or of all matching patterns of that length.
func (ss usageRules) signalsForPath(path string, template Signal) Signals {
	if len(ss) == 0 {
		return nil
	}
	var strictest strictestSignals
	pathBigrams, longest := match.BigramsOf(path), -1
	for i := range ss {
		s := &ss[i]
		// All further patterns are shorter.
		if s.pattern.Length < longest {
			break
		}
		if s.requiredBigrams&^pathBigrams == 0 && s.pattern.Matches(path) {
			longest = s.pattern.Length
			for _, w := range s.preferences {
				template.Category, template.Line, template.Preference = w.category, int(w.line),
					preferencesByStrictness[w.strictness]
				strictest.add(template)
			}
		}
	}
	return strictest.signals
}
