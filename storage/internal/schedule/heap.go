package schedule

// A HeapItem is an item of an IndexedHeap. It stores its place in the heap.
type HeapItem[T any] interface {
	// PrecedesInHeap reports whether the item comes before another.
	PrecedesInHeap(T) bool
	// HeapIndexPtr returns a pointer to the index of the item plus 1; 0 means that it is in no heap.
	HeapIndexPtr() *int32
}

// An IndexedHeap is a binary heap whose items can be moved and removed. Item 0 is the first.
type IndexedHeap[T HeapItem[T]] []T

// PushOrMove adds x, or moves it to its new place if its order has changed.
func (h *IndexedHeap[T]) PushOrMove(x T) {
	if *x.HeapIndexPtr() == 0 {
		*h = append(*h, x)
		*x.HeapIndexPtr() = int32(len(*h))
	}
	i := int(*x.HeapIndexPtr()) - 1
	if !h.siftUp(i) {
		h.siftDown(i)
	}
}

// Remove removes x, if it is in the heap.
func (h *IndexedHeap[T]) Remove(x T) {
	i, last := int(*x.HeapIndexPtr())-1, len(*h)-1
	if i < 0 {
		return
	}
	h.swap(i, last)
	var zero T
	(*h)[last] = zero // so that the garbage collector can free it
	*h = (*h)[:last]
	*x.HeapIndexPtr() = 0
	if i < last && !h.siftUp(i) {
		h.siftDown(i)
	}
}

// siftUp moves item i up while it precedes its parent, and reports whether it has moved.
func (h IndexedHeap[T]) siftUp(i int) (moved bool) {
	for i > 0 && h[i].PrecedesInHeap(h[(i-1)/2]) {
		h.swap(i, (i-1)/2)
		i, moved = (i-1)/2, true
	}
	return moved
}

// siftDown moves item i down while one of its children precedes it.
func (h IndexedHeap[T]) siftDown(i int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].PrecedesInHeap(h[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		h.swap(i, first)
		i = first
	}
}

func (h IndexedHeap[T]) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].HeapIndexPtr(), *h[j].HeapIndexPtr() = int32(i+1), int32(j+1)
}

// countFirst counts the items from i down for which isSo is true. It must be true for the parent of
// every item for which it is true.
func (h IndexedHeap[T]) countFirst(i int, isSo func(T) bool) int {
	if i >= len(h) || !isSo(h[i]) {
		return 0
	}
	return 1 + h.countFirst(2*i+1, isSo) + h.countFirst(2*i+2, isSo)
}
