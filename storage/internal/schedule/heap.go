package schedule

// A member of a heap knows its order, and its place in the heap: index + 1, so
// that the zero value is in none.
type member[T any] interface {
	before(T) bool
	place() *int32
}

// heap is a binary heap of which any member can be moved or taken out.
type heap[T member[T]] []T

// put adds x, or moves it to where it belongs by now.
func (h *heap[T]) put(x T) {
	if *x.place() == 0 {
		*h = append(*h, x)
		*x.place() = int32(len(*h))
	}
	i := int(*x.place()) - 1
	if !h.up(i) {
		h.down(i)
	}
}

// take removes x, if it is in the heap.
func (h *heap[T]) take(x T) {
	i, last := int(*x.place())-1, len(*h)-1
	if i < 0 {
		return
	}
	h.swap(i, last)
	var none T
	(*h)[last] = none // lets it be collected
	*h = (*h)[:last]
	*x.place() = 0
	if i < last && !h.up(i) {
		h.down(i)
	}
}

func (h heap[T]) up(i int) (moved bool) {
	for i > 0 && h[i].before(h[(i-1)/2]) {
		h.swap(i, (i-1)/2)
		i, moved = (i-1)/2, true
	}
	return moved
}

func (h heap[T]) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].before(h[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}

func (h heap[T]) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].place(), *h[j].place() = int32(i+1), int32(j+1)
}
