package match

// A BigramSet is the set of pairs of neighbouring bytes in a string, as a Bloom filter of 64 bits. A
// path that lacks a pair of a pattern cannot match it, so comparing two sets rules most patterns out.
type BigramSet uint64

// BigramsOf returns the pairs of neighbouring bytes in s.
func BigramsOf(s string) BigramSet {
	var p BigramSet
	for i := 1; i < len(s); i++ {
		p |= 1 << ((s[i-1]*7 ^ s[i]) & 63)
	}
	return p
}

// Bigrams returns pairs that occur in every path that p matches. It leaves out literals with optional
// escapes, because a path may spell these in two ways.
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
