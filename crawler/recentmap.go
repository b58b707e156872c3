package crawler

// A lately remembers what was kept lately: as many as it is told at least, twice as
// many at most. Its zero value is empty. It has no lock.
type lately[K comparable, V any] struct {
	now  map[K]V
	past map[K]V // what was kept before now; forgotten when now is full
}

func (l *lately[K, V]) find(key K) (v V, known bool) {
	if v, known = l.now[key]; !known {
		v, known = l.past[key]
	}
	return v, known
}

// keep remembers v. In now there is room for so many.
func (l *lately[K, V]) keep(key K, v V, size int) {
	if _, there := l.now[key]; l.now == nil || len(l.now) >= size && !there {
		l.past, l.now = l.now, map[K]V{}
	}
	l.now[key] = v
}
