package frontier

// PatternsCounted returns how many patterns are held.
func (f *Frontier) PatternsCounted() int { return len(f.patterns.counts) }
