package match

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
