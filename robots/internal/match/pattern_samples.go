package match

import (
	"strings"
)

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
