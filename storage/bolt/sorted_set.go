package bolt

import "slices"

// maxUnmerged is how many elements a run keeps apart.
const maxUnmerged = 256

// A sortedRun is a sorted list to which elements are added in any order, one of each.
// What does not belong at the end of old goes into young, which is merged into
// old when it is full: so the cost of adding grows slowly with the length.
type sortedRun[T sortedRunElement[T]] struct {
	sorted, unmerged []T
}

type sortedRunElement[T any] interface{ compare(T) int }

func binarySearch[T sortedRunElement[T]](list []T, x T) (int, bool) {
	return slices.BinarySearchFunc(list, x, T.compare)
}

func (r *sortedRun[T]) len() int { return len(r.sorted) + len(r.unmerged) }

// put adds x, or replaces what is equal to it.
func (r *sortedRun[T]) put(x T) {
	at, found := binarySearch(r.sorted, x)
	switch {
	case found:
		r.sorted[at] = x
		return
	case at == len(r.sorted): // none in young is behind the last of old
		if r.sorted == nil {
			r.sorted = make([]T, 0, 4)
		}
		r.sorted = append(r.sorted, x)
		return
	}
	if at, found = binarySearch(r.unmerged, x); found {
		r.unmerged[at] = x
		return
	}
	if r.unmerged = slices.Insert(r.unmerged, at, x); len(r.unmerged) >= maxUnmerged {
		r.mergeUnmerged()
	}
}

func (r *sortedRun[T]) mergeUnmerged() {
	merged := make([]T, 0, len(r.sorted)+len(r.sorted)/4+len(r.unmerged))
	for c := (sortedRunCursor[T]{r.sorted, r.unmerged}); ; c.advance() {
		x, ok := c.peek()
		if !ok {
			break
		}
		merged = append(merged, x)
	}
	r.sorted, r.unmerged = merged, nil
}

// takeFirstN takes the first n elements out of the run, and returns them.
func (r *sortedRun[T]) takeFirstN(n int) sortedRun[T] {
	if len(r.unmerged) > 0 {
		r.mergeUnmerged()
	}
	first := sortedRun[T]{sorted: r.sorted[:n:n]}
	r.sorted = r.sorted[n:]
	return first
}

// get returns the element that is equal to x.
func (r *sortedRun[T]) get(x T) (T, bool) {
	if at, found := binarySearch(r.sorted, x); found {
		return r.sorted[at], true
	}
	if at, found := binarySearch(r.unmerged, x); found {
		return r.unmerged[at], true
	}
	return x, false
}

// seek returns a cursor at the first element that is not before x.
func (r *sortedRun[T]) seek(x T) *sortedRunCursor[T] {
	sorted, _ := binarySearch(r.sorted, x)
	unmerged, _ := binarySearch(r.unmerged, x)
	return &sortedRunCursor[T]{r.sorted[sorted:], r.unmerged[unmerged:]}
}

// A sortedRunCursor goes through a run in order. The run must not change meanwhile.
type sortedRunCursor[T sortedRunElement[T]] struct {
	sorted, unmerged []T
}

func (c *sortedRunCursor[T]) peek() (x T, ok bool) {
	switch {
	case len(c.unmerged) == 0 && len(c.sorted) == 0:
		return x, false
	case c.nextIsFromSorted():
		return c.sorted[0], true
	}
	return c.unmerged[0], true
}

func (c *sortedRunCursor[T]) advance() {
	if c.nextIsFromSorted() {
		c.sorted = c.sorted[1:]
	} else {
		c.unmerged = c.unmerged[1:]
	}
}

func (c *sortedRunCursor[T]) nextIsFromSorted() bool {
	return len(c.unmerged) == 0 || len(c.sorted) > 0 && c.sorted[0].compare(c.unmerged[0]) < 0
}
