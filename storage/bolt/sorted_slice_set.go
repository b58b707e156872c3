package bolt

import "slices"

// maxUnmerged is the number of unmerged elements at which a set merges them.
const maxUnmerged = 256

// A sortedSliceSet is a sorted set, to which elements are added in any order. An element that belongs
// at the end is appended to mergedElements. Others are inserted into unmergedElements, which is short
// and is merged into mergedElements when it is full, so that the cost of put grows slowly with the
// length.
type sortedSliceSet[T sortedSliceSetElement[T]] struct {
	mergedElements, unmergedElements []T // each sorted; no element is in both
}

type sortedSliceSetElement[T any] interface{ compare(T) int }

func binarySearch[T sortedSliceSetElement[T]](list []T, x T) (int, bool) {
	return slices.BinarySearchFunc(list, x, T.compare)
}

func (r *sortedSliceSet[T]) len() int { return len(r.mergedElements) + len(r.unmergedElements) }

// put adds x, or replaces the element that is equal to x.
func (r *sortedSliceSet[T]) put(x T) {
	at, found := binarySearch(r.mergedElements, x)
	switch {
	case found:
		r.mergedElements[at] = x
		return
	case at == len(r.mergedElements): // unmergedElements are all lower than the last merged one
		if r.mergedElements == nil {
			r.mergedElements = make([]T, 0, 4)
		}
		r.mergedElements = append(r.mergedElements, x)
		return
	}
	if at, found = binarySearch(r.unmergedElements, x); found {
		r.unmergedElements[at] = x
		return
	}
	if r.unmergedElements = slices.Insert(r.unmergedElements, at, x); len(r.unmergedElements) >= maxUnmerged {
		r.mergeUnmerged()
	}
}

func (r *sortedSliceSet[T]) mergeUnmerged() {
	merged := make([]T, 0, len(r.mergedElements)+len(r.mergedElements)/4+len(r.unmergedElements))
	r.mergedElements, r.unmergedElements = slices.AppendSeq(merged, r.all), nil
}

// takeFirstN removes the first n elements, and returns them as a set.
func (r *sortedSliceSet[T]) takeFirstN(n int) sortedSliceSet[T] {
	if len(r.unmergedElements) > 0 {
		r.mergeUnmerged()
	}
	first := sortedSliceSet[T]{mergedElements: r.mergedElements[:n:n]}
	r.mergedElements = r.mergedElements[n:]
	return first
}

// get returns the element that is equal to x, and whether the set has it.
func (r *sortedSliceSet[T]) get(x T) (T, bool) {
	if at, found := binarySearch(r.mergedElements, x); found {
		return r.mergedElements[at], true
	}
	if at, found := binarySearch(r.unmergedElements, x); found {
		return r.unmergedElements[at], true
	}
	return x, false
}

// all yields the elements in order. The set must not change meanwhile.
func (r *sortedSliceSet[T]) all(yield func(T) bool) {
	for c := (sortedSliceSetCursor[T]{r.mergedElements, r.unmergedElements}); ; c.advance() {
		if x, ok := c.peek(); !ok || !yield(x) {
			return
		}
	}
}

// cursorFrom returns a cursor at the first element that is not less than x.
func (r *sortedSliceSet[T]) cursorFrom(x T) *sortedSliceSetCursor[T] {
	sorted, _ := binarySearch(r.mergedElements, x)
	unmerged, _ := binarySearch(r.unmergedElements, x)
	return &sortedSliceSetCursor[T]{r.mergedElements[sorted:], r.unmergedElements[unmerged:]}
}

// A sortedSliceSetCursor yields the elements of a set in order. The set must not change meanwhile.
type sortedSliceSetCursor[T sortedSliceSetElement[T]] struct {
	sorted, unmerged []T
}

func (c *sortedSliceSetCursor[T]) peek() (x T, ok bool) {
	switch {
	case len(c.unmerged) == 0 && len(c.sorted) == 0:
		return x, false
	case c.nextIsFromSorted():
		return c.sorted[0], true
	}
	return c.unmerged[0], true
}

func (c *sortedSliceSetCursor[T]) advance() {
	if c.nextIsFromSorted() {
		c.sorted = c.sorted[1:]
	} else {
		c.unmerged = c.unmerged[1:]
	}
}

func (c *sortedSliceSetCursor[T]) nextIsFromSorted() bool {
	return len(c.unmerged) == 0 || len(c.sorted) > 0 && c.sorted[0].compare(c.unmerged[0]) < 0
}
