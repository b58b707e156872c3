package robots

// wildcards are rules that are more than a prefix, in the order of
// rule.compare.
type wildcards []wildcard

type wildcard struct {
	pairs   pairs // of the pattern's literals
	rule    *rule
	pattern pattern
}

// find returns the first rule that matches path and beats best, and best if
// there is none.
func (ws wildcards) find(path string, best *rule) *rule {
	if len(ws) == 0 {
		return best
	}
	here := pairsOf(path)
	for i := range ws {
		w := &ws[i]
		if best != nil && best.compare(w.rule) < 0 {
			return best
		}
		if w.pairs&^here == 0 && w.pattern.match(path) {
			return w.rule
		}
	}
	return best
}

// pairs is the set of pairs of neighbouring bytes of a string, as a Bloom
// filter of one word. A path that lacks a pair of a pattern cannot match it:
// that settles most patterns without looking at them.
type pairs uint64

func pairsOf(s string) pairs {
	var p pairs
	for i := 1; i < len(s); i++ {
		p |= 1 << ((s[i-1]*7 ^ s[i]) & 63)
	}
	return p
}

// pairs returns the pairs that every path has that p matches. What a mark is
// spelled like is not known, so literals with marks have no say.
func (p *pattern) pairs() pairs {
	all := p.head.pairs()
	for _, l := range p.tail {
		all |= l.pairs()
	}
	return all
}

func (l *literal) pairs() pairs {
	if l.marks {
		return 0
	}
	return pairsOf(l.text)
}
