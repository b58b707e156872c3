package match

// BigramSet is the set of pairs of neighbouring bytes of a string, as a Bloom
// filter of one word. A path that lacks a pair of a pattern cannot match it:
// that settles most patterns without looking at them.
type BigramSet uint64

func BigramsOf(s string) BigramSet {
	var p BigramSet
	for i := 1; i < len(s); i++ {
		p |= 1 << ((s[i-1]*7 ^ s[i]) & 63)
	}
	return p
}

// Bigrams returns the pairs that every path has that p matches. What a mark is
// spelled like is not known, so literals with marks have no say.
func (p *Pattern) Bigrams() BigramSet {
	all := p.head.bigrams()
	for _, l := range p.tail {
		all |= l.bigrams()
	}
	return all
}

func (l *literal) bigrams() BigramSet {
	if l.hasOptionalEscapes {
		return 0
	}
	return BigramsOf(l.text)
}
