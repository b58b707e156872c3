package robots

import (
	"slices"
	"strconv"
	"strings"
)

// statements are what the lines of one field ask, each path once, the longest
// first: what is judged by them need not read again what a file repeats.
type statements []statement

// A statement is what all lines with one path ask together.
type statement struct {
	pairs   pairs // of the pattern
	pattern pattern
	wishes  []wish
}

// A wish is a Signal without what all of a statement share.
type wish struct {
	category   string
	line       int32
	strictness int8
}

// newStatements reads lines of one field.
func newStatements(lines []line) statements {
	var all statements
	var asked []union            // by each of all
	place := map[string]int{}    // in all, by pattern
	names := map[string]string{} // of categories, each once
	for _, l := range lines {
		path, list := cutPath(l.value)
		p := compilePattern(strings.Clone(path))
		key := p.key()
		i, known := place[key]
		if !known {
			i, place[key] = len(all), len(all)
			all, asked = append(all, statement{pairs: p.pairs(), pattern: p}), append(asked, union{})
		}
		asked[i].add(wishes(list, Signal{Line: int(l.number)})...)
	}
	for i := range all {
		all[i].keep(asked[i].all, names)
	}
	slices.SortStableFunc(all, func(a, b statement) int { return b.pattern.length - a.pattern.length })
	return all
}

// cutPath cuts "[path] preferences" in two. Without a path the line speaks of the
// whole site.
func cutPath(value string) (path, list string) {
	if !validPath(value) {
		return "/", value
	}
	path = value
	if i := strings.IndexAny(value, blank); i >= 0 {
		path = value[:i]
	}
	return path, value[len(path):]
}

// key returns what two patterns have in common that match and count the same. No
// literal has a space, nor a tab.
func (p *pattern) key() string {
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

// keep keeps what is asked, in little space.
func (s *statement) keep(asked Signals, names map[string]string) {
	s.wishes = make([]wish, len(asked))
	for i, a := range asked {
		name, known := names[a.Category]
		if !known {
			name, names[a.Category] = a.Category, a.Category
		}
		s.wishes[i] = wish{name, int32(a.Line), int8(a.Preference.strictness())}
	}
}

// of returns what is asked of a path, each as the signal as: by the longest
// pattern that matches, or by all of them that are as long.
func (ss statements) of(path string, as Signal) Signals {
	if len(ss) == 0 {
		return nil
	}
	var asked union
	here, longest := pairsOf(path), -1
	for i := range ss {
		s := &ss[i]
		if s.pattern.length < longest {
			break
		}
		if s.pairs&^here == 0 && s.pattern.match(path) {
			longest = s.pattern.length
			for _, w := range s.wishes {
				as.Category, as.Line, as.Preference = w.category, int(w.line), byStrictness[w.strictness]
				asked.add(as)
			}
		}
	}
	return asked.all
}
