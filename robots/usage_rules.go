package robots

import (
	"slices"
	"strconv"
	"strings"
)

// usageRules are what the lines of one field ask, each path once, the longest
// first: what is judged by them need not read again what a file repeats.
type usageRules []usageRule

// A usageRule is what all lines with one path ask together.
type usageRule struct {
	requiredBigrams bigramSet // of the pattern
	pattern         pattern
	preferences     []categoryPreference
}

// A categoryPreference is a UsageSignal without what all of a statement share.
type categoryPreference struct {
	category   string
	line       int32
	strictness int8
}

// newUsageRules reads lines of one field.
func newUsageRules(lines []parsedLine) usageRules {
	var all usageRules
	var strictest []strictestSignals // by each of all
	index := map[string]int{}        // in all, by pattern
	names := map[string]string{}     // of categories, each once
	for _, l := range lines {
		path, list := splitPathAndPreferences(l.value)
		p := compilePattern(strings.Clone(path))
		key := p.canonicalKey()
		i, known := index[key]
		if !known {
			i, index[key] = len(all), len(all)
			all, strictest = append(all, usageRule{requiredBigrams: p.bigrams(), pattern: p}), append(strictest, strictestSignals{})
		}
		strictest[i].add(parsePreferences(list, UsageSignal{Line: int(l.number)})...)
	}
	for i := range all {
		all[i].setPreferences(strictest[i].signals, names)
	}
	slices.SortStableFunc(all, func(a, b usageRule) int { return b.pattern.length - a.pattern.length })
	return all
}

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

// canonicalKey returns what two patterns have in common that match and count the same. No
// literal has a space, nor a tab.
func (p *pattern) canonicalKey() string {
	var b strings.Builder
	b.WriteString(strconv.Itoa(p.length))
	b.WriteString(" " + p.head.text)
	for _, l := range p.tail {
		b.WriteString(" ")
		b.WriteString(l.text)
	}
	if p.anchored {
		b.WriteString("\t")
	}
	return b.String()
}

// setPreferences keeps what is asked, in little space.
func (s *usageRule) setPreferences(signals UsageSignals, names map[string]string) {
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
func (ss usageRules) signalsForPath(path string, template UsageSignal) UsageSignals {
	if len(ss) == 0 {
		return nil
	}
	var strictest strictestSignals
	pathBigrams, longest := bigramsOf(path), -1
	for i := range ss {
		s := &ss[i]
		if s.pattern.length < longest {
			break
		}
		if s.requiredBigrams&^pathBigrams == 0 && s.pattern.matches(path) {
			longest = s.pattern.length
			for _, w := range s.preferences {
				template.Category, template.Line, template.Preference = w.category, int(w.line), preferencesByStrictness[w.strictness]
				strictest.add(template)
			}
		}
	}
	return strictest.signals
}
