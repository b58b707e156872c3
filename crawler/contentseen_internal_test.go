package crawler

import "testing"

// TestContentSeenIsBounded: contentSeen remembers the latest bodies, and no more than its size
// allows.
func TestContentSeenIsBounded(t *testing.T) {
	var b contentSeen
	isDuplicate := func(i int, url string) bool {
		onAnyHost, onThisHost := b.addAndReportDuplicate(uint64(i), "a.test", url)
		if onAnyHost != onThisHost {
			t.Fatalf("body %d of the only host: a duplicate %v, on the host %v", i, onAnyHost, onThisHost)
		}
		return onAnyHost
	}
	for i := range 5 * contentSeenSize {
		if isDuplicate(i, "first") {
			t.Fatalf("body %d is new", i)
		}
		if n := b.firstURLHashes.Len(); n > 4*contentSeenSize {
			t.Fatalf("%d keys are remembered, two for each body", n)
		}
	}
	for i := 4 * contentSeenSize; i < 5*contentSeenSize; i++ {
		if isDuplicate(i, "first") || !isDuplicate(i, "second") {
			t.Fatalf("body %d was the first page's and is the second's now", i)
		}
	}
	if isDuplicate(0, "second") {
		t.Error("the oldest body is still remembered")
	}
}

// TestContentSeenOfHosts: the first body of a host is not a duplicate on that host, even if another host
// gave it before.
func TestContentSeenOfHosts(t *testing.T) {
	var b contentSeen
	for _, tt := range []struct {
		host, url             string
		onAnyHost, onThisHost bool
	}{
		{"a.test", "a/1", false, false},
		{"b.test", "b/1", true, false},
		{"b.test", "b/2", true, true},
		{"b.test", "b/1", true, false},
		{"a.test", "a/1", false, false},
	} {
		if any, this := b.addAndReportDuplicate(1, tt.host, tt.url); any != tt.onAnyHost || this != tt.onThisHost {
			t.Errorf("%s: a duplicate %v, on its host %v; want %v, %v", tt.url, any, this, tt.onAnyHost, tt.onThisHost)
		}
	}
}
