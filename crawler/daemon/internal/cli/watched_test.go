package cli

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"
)

// A syncBuffer is a buffer that can be read while a process writes to it.
type syncBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (w *syncBuffer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *syncBuffer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// waitWithOutput waits for a condition, and fails with the output of the process if it does not come
// true.
func waitWithOutput(t *testing.T, what string, output fmt.Stringer, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s\n%s", what, output)
		}
	}
}
