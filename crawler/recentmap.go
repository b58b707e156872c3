package crawler

// A recentMap remembers what was kept lately: as many as it is told at least, twice as
// many at most. Its zero value is empty. It has no lock.
type recentMap[K comparable, V any] struct {
	current  map[K]V
	previous map[K]V // what was kept before now; forgotten when now is full
}

func (l *recentMap[K, V]) peek(key K) (v V, known bool) {
	if v, known = l.current[key]; !known {
		v, known = l.previous[key]
	}
	return v, known
}

// put remembers v. In now there is room for so many.
func (l *recentMap[K, V]) put(key K, v V, size int) {
	if _, exists := l.current[key]; l.current == nil || len(l.current) >= size && !exists {
		l.previous, l.current = l.current, map[K]V{}
	}
	l.current[key] = v
}
