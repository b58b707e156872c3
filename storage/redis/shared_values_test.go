package redis

import (
	"maps"
	"testing"

	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// What one process puts on the board another reads, and reads once.
func TestSharedValues(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 1)
	prefix := newPrefix()
	one, other := openServerClock(t, c, prefix, Options{Partitions: 4}), openServerClock(t, c, prefix, Options{Partitions: 4})
	version := "none yet"
	read := func(want map[string]string) {
		t.Helper()
		values, newVersion, err := other.SharedValuesIfChanged(t.Context(), version)
		must(t, err)
		if (values == nil) != (want == nil) || !maps.Equal(values, want) {
			t.Errorf("the board is %v, want %v", values, want)
		}
		version = newVersion
	}
	set := func(name, value, old string, want bool) {
		t.Helper()
		stored, err := one.SetSharedValue(t.Context(), name, value, old)
		must(t, err)
		if stored != want {
			t.Errorf("post %s=%s: %v, want %v", name, value, stored, want)
		}
	}
	read(map[string]string{})
	read(nil)
	set("a", "1", "", true)
	set("b", "2", "", true)
	read(map[string]string{"a": "1", "b": "2"})
	read(nil)
	set("a", "", "3", false)
	read(nil)
	set("a", "", "1", true)
	read(map[string]string{"b": "2"})
	set("b", "2", "2", true)
	read(map[string]string{"b": "2"})
}
