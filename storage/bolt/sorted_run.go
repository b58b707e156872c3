package bolt

import "slices"

// maxUnmerged is how many elements a run keeps apart.
const maxUnmerged = 256

// A run is a sorted list to which elements are added in any order, one of each.
// What does not belong at the end of old goes into young, which is merged into
// old when it is full: so the cost of adding grows slowly with the length.
type run[T element[T]] struct {
	old, young []T
}

type element[T any] interface{ compare(T) int }

func search[T element[T]](list []T, x T) (int, bool) {
	return slices.BinarySearchFunc(list, x, T.compare)
}

func (r *run[T]) len() int { return len(r.old) + len(r.young) }

// put adds x, or replaces what is equal to it.
func (r *run[T]) put(x T) {
	at, found := search(r.old, x)
	switch {
	case found:
		r.old[at] = x
		return
	case at == len(r.old): // none in young is behind the last of old
		if r.old == nil {
			r.old = make([]T, 0, 4)
		}
		r.old = append(r.old, x)
		return
	}
	if at, found = search(r.young, x); found {
		r.young[at] = x
		return
	}
	if r.young = slices.Insert(r.young, at, x); len(r.young) >= maxUnmerged {
		r.merge()
	}
}

func (r *run[T]) merge() {
	merged := make([]T, 0, len(r.old)+len(r.old)/4+len(r.young))
	for c := (cursor[T]{r.old, r.young}); ; c.next() {
		x, ok := c.peek()
		if !ok {
			break
		}
		merged = append(merged, x)
	}
	r.old, r.young = merged, nil
}

// cut takes the first n elements out of the run, and returns them.
func (r *run[T]) cut(n int) run[T] {
	if len(r.young) > 0 {
		r.merge()
	}
	first := run[T]{old: r.old[:n:n]}
	r.old = r.old[n:]
	return first
}

// get returns the element that is equal to x.
func (r *run[T]) get(x T) (T, bool) {
	if at, found := search(r.old, x); found {
		return r.old[at], true
	}
	if at, found := search(r.young, x); found {
		return r.young[at], true
	}
	return x, false
}

// seek returns a cursor at the first element that is not before x.
func (r *run[T]) seek(x T) *cursor[T] {
	old, _ := search(r.old, x)
	young, _ := search(r.young, x)
	return &cursor[T]{r.old[old:], r.young[young:]}
}

// A cursor goes through a run in order. The run must not change meanwhile.
type cursor[T element[T]] struct {
	old, young []T
}

func (c *cursor[T]) peek() (x T, ok bool) {
	switch {
	case len(c.young) == 0 && len(c.old) == 0:
		return x, false
	case c.isOld():
		return c.old[0], true
	}
	return c.young[0], true
}

func (c *cursor[T]) next() {
	if c.isOld() {
		c.old = c.old[1:]
	} else {
		c.young = c.young[1:]
	}
}

func (c *cursor[T]) isOld() bool {
	return len(c.young) == 0 || len(c.old) > 0 && c.old[0].compare(c.young[0]) < 0
}
