package match

// A Span is the part path[Start:End] of a path, as offsets in bytes.
type Span struct{ Start, End int }

// matchSpans returns the part of path that p matches, and the part that each wildcard before a
// literal matches. p must match path. It takes each literal at the same place as Matches.
func (p *Pattern) matchSpans(path string) (whole Span, wildcards []Span) {
	at := p.head.matchedPrefixLen(path)
	for i := range p.tail {
		l, end := &p.tail[i], 0
		if p.anchored && i == len(p.tail)-1 {
			end = len(path)
		} else {
			end = at + l.indexEnd(path[at:])
		}
		// The literal ends at end; the wildcard before it matches up to start.
		start := at
		for l.matchedPrefixLen(path[start:end]) != end-start {
			start++
		}
		wildcards = append(wildcards, Span{at, start})
		at = end
	}
	return Span{0, at}, wildcards
}
