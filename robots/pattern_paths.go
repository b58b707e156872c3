package robots

import (
	"strconv"
	"strings"
)

// A span is a part of a path, as offsets in bytes: start is in it, end is not.
type span struct{ start, end int }

// matchSpans returns what of path, which p matches, p takes, and what of it each
// wildcard before a literal stands for. It takes literals where matches does.
func (p *pattern) matchSpans(path string) (whole span, wildcards []span) {
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
		wildcards = append(wildcards, span{at, start})
		at = end
	}
	return span{0, at}, wildcards
}

// wildcardFiller stands in a skeleton for what a wildcard matches. No literal has it, so
// only wildcards match it.
const wildcardFiller = "\x00"

// skeleton returns a path that matches only patterns which match whatever p does.
// Patterns of equal length and skeleton always match the same paths.
func (p *pattern) skeleton() string {
	if p.anchored {
		return p.samplePath(wildcardFiller)
	}
	return p.samplePath(wildcardFiller) + wildcardFiller
}

// samplePath returns a path that p matches: its literals, with filler for each wildcard
// but the one that is implied at its end.
func (p *pattern) samplePath(filler string) string {
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
