package redis

import (
	"maps"
	"testing"

	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// What one process puts on the board another reads, and reads once.
func TestBoard(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1, 1)
	prefix := newPrefix()
	one, other := openShared(t, c, prefix, Options{Partitions: 4}), openShared(t, c, prefix, Options{Partitions: 4})
	version := "none yet"
	read := func(want map[string]string) {
		t.Helper()
		board, newest, err := other.SharedValues(t.Context(), version)
		must(t, err)
		if (board == nil) != (want == nil) || !maps.Equal(board, want) {
			t.Errorf("the board is %v, want %v", board, want)
		}
		version = newest
	}
	post := func(name, value, was string, want bool) {
		t.Helper()
		posted, err := one.SetSharedValue(t.Context(), name, value, was)
		must(t, err)
		if posted != want {
			t.Errorf("post %s=%s: %v, want %v", name, value, posted, want)
		}
	}
	read(map[string]string{})
	read(nil)
	post("a", "1", "", true)
	post("b", "2", "", true)
	read(map[string]string{"a": "1", "b": "2"})
	read(nil)
	post("a", "", "3", false)
	read(nil)
	post("a", "", "1", true)
	read(map[string]string{"b": "2"})
	post("b", "2", "2", true)
	read(map[string]string{"b": "2"})
}
