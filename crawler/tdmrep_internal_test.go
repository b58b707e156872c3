package crawler

import (
	"fmt"
	"testing"

	"github.com/decorum-crawler/decorum"
)

// TestTDMRepCacheIsBounded: the file of an origin that was just fetched stays cached while its page
// is visited, however many other origins there are.
func TestTDMRepCacheIsBounded(t *testing.T) {
	var cache tdmrepCache
	of := func(i int) decorum.Origin {
		u, err := decorum.ParseURL(fmt.Sprintf("http://h%d.test/", i))
		if err != nil {
			t.Fatal(err)
		}
		return u.Origin()
	}
	for i := range 4 * tdmrepCacheSize {
		cache.put(of(i), &CachedTDMRep{})
		for _, before := range []int{i, i - 1, i - tdmrepCacheSize} {
			if before >= 0 && cache.get(of(before)) == nil {
				t.Fatalf("%d is forgotten when %d comes", before, i)
			}
		}
		if n := cache.states.Len(); n > 2*tdmrepCacheSize {
			t.Fatalf("%d are held", n)
		}
	}
}
