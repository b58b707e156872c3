package match

import (
	"strconv"
	"strings"
)

// A Span is a part of a path, as offsets in bytes: start is in it, end is not.
type Span struct{ Start, End int }

// matchSpans returns what of path, which p matches, p takes, and what of it each
// wildcard before a literal stands for. It takes literals where matches does.
func (p *Pattern) matchSpans(path string) (whole Span, wildcards []Span) {
	at := p.head.matchedPrefixLen(path)
	for i := range p.tail {
		l, end := &p.tail[i], 0
		if p.anchored && i == len(p.tail)-1 {
			end = len(path)
		} else {
			end = at + l.indexEnd(path[at:])
		}
		start := at
		for l.matchedPrefixLen(path[start:end]) != end-start {
			start++
		}
		wildcards = append(wildcards, Span{at, start})
		at = end
	}
	return Span{0, at}, wildcards
}

// wildcardFiller stands in a skeleton for what a wildcard matches. No literal has it, so
// only wildcards match it.
const wildcardFiller = "\x00"

// Skeleton returns a path that matches only patterns which match whatever p does.
// Patterns of equal length and skeleton always match the same paths.
func (p *Pattern) Skeleton() string {
	if p.anchored {
		return p.SamplePath(wildcardFiller)
	}
	return p.SamplePath(wildcardFiller) + wildcardFiller
}

// SamplePath returns a path that p matches: its literals, with filler for each wildcard
// but the one that is implied at its end.
func (p *Pattern) SamplePath(filler string) string {
	var b strings.Builder
	b.WriteString(p.head.text)
	if p.head.text == "" && (len(p.tail) == 0 || p.tail[0].text[0] != '/') {
		b.WriteByte('/') // every path begins with it
	}
	for i := range p.tail {
		b.WriteString(filler)
		b.WriteString(p.tail[i].text)
	}
	return b.String()
}

// Key returns what two patterns have in common that match and count the same. No
// literal has a space, nor a tab.
func (p *Pattern) Key() string {
	parts := []string{strconv.Itoa(p.Length), p.head.text}
	for _, l := range p.tail {
		parts = append(parts, l.text)
	}
	if p.anchored {
		parts = append(parts, "\t")
	}
	return strings.Join(parts, " ")
}
