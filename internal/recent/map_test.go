package recent

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMap makes random calls, and checks that the last used entries have their values, that deleted
// entries are absent, and that there are at most twice size entries.
func TestMap(t *testing.T) {
	for _, size := range []int{1, 2, 7} {
		var m Map[int, int]
		rnd := rand.New(rand.NewPCG(1, uint64(size)))
		var used []int // keys, the last used first, including deleted ones
		values, deleted := map[int]int{}, map[int]bool{}
		use := func(key int) {
			used = slices.DeleteFunc(used, func(k int) bool { return k == key })
			used = slices.Insert(used, 0, key)
		}
		for call := range 20_000 {
			key := rnd.IntN(4 * size)
			switch rnd.IntN(5) {
			case 0, 1:
				m.Put(key, call, size)
				values[key], deleted[key] = call, false
				use(key)
			case 2, 3:
				if _, ok := m.Get(key, size); ok {
					use(key)
				}
			case 4:
				m.Delete(key)
				deleted[key] = true
			}
			for _, k := range used[:min(size, len(used))] {
				if v, ok := m.Peek(k); ok == deleted[k] || ok && v != values[k] {
					t.Fatalf("size %d, call %d: %d is %d, %t, want %d, %t", size, call, k, v,
						ok, values[k], !deleted[k])
				}
			}
			found := 0
			for k := range 4 * size {
				v, ok := m.Peek(k)
				if ok && (deleted[k] || v != values[k]) {
					t.Fatalf("size %d, call %d: %d is %d, want %d, deleted %t", size, call, k, v, values[k], deleted[k])
				}
				if ok {
					found++
				}
			}
			if found != m.Len() || found > 2*size {
				t.Fatalf("size %d, call %d: %d entries, Len %d", size, call, found, m.Len())
			}
		}
	}
}

// TestPeekIsNoUse checks that Get counts as a use and Peek does not.
func TestPeekIsNoUse(t *testing.T) {
	fill := func(read func(m *Map[int, int])) bool {
		var m Map[int, int]
		for k := range 5 { // of size 2
			m.Put(k, k, 2)
			read(&m)
		}
		_, ok := m.Peek(0)
		return ok
	}
	if fill(func(m *Map[int, int]) { m.Peek(0) }) {
		t.Error("Peek counts as a use")
	}
	if !fill(func(m *Map[int, int]) { m.Get(0, 2) }) {
		t.Error("Get does not count as a use")
	}
}
