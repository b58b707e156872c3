package match

import (
	"strings"
)

// wildcardFiller represents, in a skeleton, the text that a wildcard matches. Literals do not contain
// it, so only wildcards match it.
const wildcardFiller = "\x00"

// Skeleton returns a path with this property: a pattern that matches it matches every path that p
// matches. Patterns of equal Length and skeleton match the same paths.
func (p *Pattern) Skeleton() string {
	if p.anchored {
		return p.SamplePath(wildcardFiller)
	}
	return p.SamplePath(wildcardFiller) + wildcardFiller
}

// SamplePath returns a path that p matches: its literals, with filler in place of each wildcard
// except the one implied at its end.
func (p *Pattern) SamplePath(filler string) string {
	var b strings.Builder
	b.WriteString(p.head.text)
	if p.head.text == "" && (len(p.tail) == 0 || p.tail[0].text[0] != '/') {
		b.WriteByte('/') // every path begins with a slash
	}
	for i := range p.tail {
		b.WriteString(filler)
		b.WriteString(p.tail[i].text)
	}
	return b.String()
}
