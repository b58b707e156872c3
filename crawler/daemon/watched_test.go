package daemon

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"
)

// A watched buffer can be read while a process writes to it.
type watched struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// until waits for something that must come.
func until(t *testing.T, what string, said fmt.Stringer, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s\n%s", what, said)
		}
	}
}
