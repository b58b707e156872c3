package memory_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// TestMemoryRefusesURLsBeyondItsLimit: an Add beyond MaxURLs changes nothing and returns ErrFull. Known
// URLs do not count.
func TestMemoryRefusesURLsBeyondItsLimit(t *testing.T) {
	m := memory.New(memory.Config{MaxURLs: 3})
	defer m.Close()
	add := func(urls ...int) (int, error) {
		var entries []storage.Entry
		for _, n := range urls {
			u, err := decorum.ParseURL(fmt.Sprintf("https://a.example/%d", n))
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, storage.Entry{URL: u})
		}
		results, err := m.Add(t.Context(), entries, 0)
		return storage.CountAdded(results), err
	}
	tests := []struct {
		urls  []int
		added int
		err   error
	}{
		{[]int{1, 2}, 2, nil},
		{[]int{3, 4}, 0, storage.ErrFull}, // the whole call, although 3 alone would fit
		{[]int{1, 2, 3, 3, 1}, 1, nil},    // one of them is new
		{[]int{1, 2, 3}, 0, nil},
		{[]int{4}, 0, storage.ErrFull},
	}
	for i, tt := range tests {
		if added, err := add(tt.urls...); added != tt.added || !errors.Is(err, tt.err) {
			t.Errorf("call %d: added %d (%v), want %d (%v)", i, added, err, tt.added, tt.err)
		}
	}
}
