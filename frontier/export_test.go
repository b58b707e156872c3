package frontier

// PatternCount returns how many patterns, and other groups of URLs, are counted.
func (f *Frontier) PatternCount() (n int) {
	for _, l := range f.countLimiters {
		n += len(l.counts.counts)
	}
	return n
}
