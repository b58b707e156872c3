package aiuse

import (
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/match"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// Rules are what one robots.txt asks one agent of the use of content. They are
// immutable and safe for concurrent use; nil ones ask nothing.
type Rules struct {
	byField [len(signalFields)]usageRules
}

// signalFields are the fields that speak of the use of content.
var signalFields = [...]string{"content-usage", "content-signal"}

// Compile compiles what a file asks of an agent. It is nil if that is nothing.
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

// SignalsForURL returns the preferences for u, raw: what a category means, and what
// follows if it is not named, is for who uses the content. As with rules the
// longest path that matches counts, for each of the two fields on its own; of
// lines with equal paths all do, and a category that one of them disallows is
// disallowed. Its time grows with the number of paths that the file names, not with
// that of its lines.
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

// usageRules are what the lines of one field ask, each path once, the longest
// first: what is judged by them need not read again what a file repeats.
type usageRules []usageRule

// A usageRule is what all lines with one path ask together.
type usageRule struct {
	requiredBigrams match.BigramSet // of the pattern
	pattern         match.Pattern
	preferences     []categoryPreference
}

// A categoryPreference is a Signal without what all of a statement share.
type categoryPreference struct {
	category   string
	line       int32
	strictness int8
}

// newUsageRules reads those of lines that have a field.
func newUsageRules(lines []robots.Line, field string) usageRules {
	var all usageRules
	var strictest []strictestSignals // by each of all
	index := map[string]int{}        // in all, by pattern
	names := map[string]string{}     // of categories, each once
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
			all, strictest = append(all, usageRule{requiredBigrams: p.Bigrams(), pattern: p}), append(strictest, strictestSignals{})
		}
		strictest[i].add(signalsOfList(list, Signal{Line: l.Number})...)
	}
	for i := range all {
		all[i].setPreferences(strictest[i].signals, names)
	}
	slices.SortStableFunc(all, func(a, b usageRule) int { return b.pattern.Length - a.pattern.Length })
	return all
}

// setPreferences keeps what is asked, in little space.
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

// signalsForPath returns what is asked of a path, each as the signal as: by the longest
// pattern that matches, or by all of them that are as long.
func (ss usageRules) signalsForPath(path string, template Signal) Signals {
	if len(ss) == 0 {
		return nil
	}
	var strictest strictestSignals
	pathBigrams, longest := match.BigramsOf(path), -1
	for i := range ss {
		s := &ss[i]
		if s.pattern.Length < longest {
			break
		}
		if s.requiredBigrams&^pathBigrams == 0 && s.pattern.Matches(path) {
			longest = s.pattern.Length
			for _, w := range s.preferences {
				template.Category, template.Line, template.Preference = w.category, int(w.line), preferencesByStrictness[w.strictness]
				strictest.add(template)
			}
		}
	}
	return strictest.signals
}
