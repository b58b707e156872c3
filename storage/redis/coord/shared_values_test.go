package coord

import (
	"maps"
	"testing"

	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// A process reads the values that another process has set, and reads them once per version.
func TestSharedValues(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 1)
	one, other := NewSharedValues(openClient(t, c, "values", 4)), NewSharedValues(openClient(t, c, "values", 4))
	version := "none yet"
	read := func(want map[string]string) {
		t.Helper()
		values, newVersion, err := other.ReadIfChanged(t.Context(), version)
		must(t, err)
		if (values == nil) != (want == nil) || !maps.Equal(values, want) {
			t.Errorf("the values are %v, want %v", values, want)
		}
		version = newVersion
	}
	set := func(name, value, old string, want bool) {
		t.Helper()
		stored, err := one.CompareAndSet(t.Context(), name, value, old)
		must(t, err)
		if stored != want {
			t.Errorf("set %s=%s: %v, want %v", name, value, stored, want)
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
