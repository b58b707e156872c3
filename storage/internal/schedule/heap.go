package schedule

// A HeapItem knows its order, and its place in the heap: index + 1, so
// that the zero value is in none.
type HeapItem[T any] interface {
	PrecedesInHeap(T) bool
	HeapIndexPtr() *int32
}

// IndexedHeap is a binary heap of which any member can be moved or taken out.
type IndexedHeap[T HeapItem[T]] []T

// PushOrMove adds x, or moves it to where it belongs by now.
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
	(*h)[last] = zero // lets it be collected
	*h = (*h)[:last]
	*x.HeapIndexPtr() = 0
	if i < last && !h.siftUp(i) {
		h.siftDown(i)
	}
}

func (h IndexedHeap[T]) siftUp(i int) (moved bool) {
	for i > 0 && h[i].PrecedesInHeap(h[(i-1)/2]) {
		h.swap(i, (i-1)/2)
		i, moved = (i-1)/2, true
	}
	return moved
}

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

// countFirst counts the members from i down that are so, if none is below one that is not.
func (h IndexedHeap[T]) countFirst(i int, isSo func(T) bool) int {
	if i >= len(h) || !isSo(h[i]) {
		return 0
	}
	return 1 + h.countFirst(2*i+1, isSo) + h.countFirst(2*i+2, isSo)
}
