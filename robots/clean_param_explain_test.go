package robots

import (
	"slices"
	"testing"

	"github.com/decorum-crawler/decorum"
)

// TestExplainClean proves that ExplainURLCleaning names the parameters that CleanURL removes, and the
// first line that removes each.
func TestExplainClean(t *testing.T) {
	f := Parse([]byte("User-agent: *\nClean-param: ref&sid /shop\nClean-param: bad /shop extra\nDisallow: "+
		"/x\nClean-param: sid\n"), Google)
	for _, tt := range []struct {
		path, clean string
		taken       []RemovedParam
	}{
		{"/shop?ref=1&a=2&sid=3", "/shop?a=2",
			[]RemovedParam{{"ref=1", "clean-param: ref&sid /shop", 2}, {"sid=3", "clean-param: ref&sid /shop", 2}}},
		{"/other?ref=1&sid", "/other?ref=1", []RemovedParam{{"sid", "clean-param: sid", 5}}},
		{"/shop?bad=1", "/shop?bad=1", nil},
		{"/shop", "/shop", nil},
	} {
		u, err := decorum.ParseURL("http://a.test" + tt.path)
		if err != nil {
			t.Fatal(err)
		}
		clean, removed := f.ExplainURLCleaning(u)
		if clean.PathAndQuery() != tt.clean || clean != f.URLCleaner().CleanURL(u) || !slices.Equal(removed, tt.taken) {
			t.Errorf("%s: %s by %v, want %s by %v", tt.path, clean.PathAndQuery(), removed, tt.clean, tt.taken)
		}
	}
}
