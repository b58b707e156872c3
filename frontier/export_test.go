package frontier

// PatternCount returns how many patterns are counted.
func (f *Frontier) PatternCount() int { return len(f.patterns.counts.counts) }
