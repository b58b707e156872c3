package crawler

import "testing"

// TestBodiesAreBounded: the latest bodies are remembered, and no more than fit.
func TestBodiesAreBounded(t *testing.T) {
	var b bodies
	body := func(i int) uint64 { return uint64(i) }
	for i := range 5 * contentSeenSize {
		if b.known(body(i), "first") {
			t.Fatalf("body %d is new", i)
		}
		if n := len(b.now) + len(b.past); n > 2*contentSeenSize {
			t.Fatalf("%d bodies are remembered", n)
		}
	}
	for i := 4 * contentSeenSize; i < 5*contentSeenSize; i++ {
		if b.known(body(i), "first") || !b.known(body(i), "second") {
			t.Fatalf("body %d was the first page's and is the second's now", i)
		}
	}
	if b.known(body(0), "second") {
		t.Error("the oldest body is still remembered")
	}
}
