package crawler

import "testing"

// TestContentSeenIsBounded: contentSeen remembers the latest bodies, and no more than its size
// allows.
func TestContentSeenIsBounded(t *testing.T) {
	var b contentSeen
	body := func(i int) uint64 { return uint64(i) }
	for i := range 5 * contentSeenSize {
		if b.addAndReportDuplicate(body(i), "first") {
			t.Fatalf("body %d is new", i)
		}
		if n := b.firstURLHashes.Len(); n > 2*contentSeenSize {
			t.Fatalf("%d bodies are remembered", n)
		}
	}
	for i := 4 * contentSeenSize; i < 5*contentSeenSize; i++ {
		if b.addAndReportDuplicate(body(i), "first") || !b.addAndReportDuplicate(body(i), "second") {
			t.Fatalf("body %d was the first page's and is the second's now", i)
		}
	}
	if b.addAndReportDuplicate(body(0), "second") {
		t.Error("the oldest body is still remembered")
	}
}
