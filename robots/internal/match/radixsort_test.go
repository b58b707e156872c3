package match

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestSortByKey compares the order with that of a plain sort. The keys have many words of eight bytes
// in common, are prefixes of each other, or are equal.
func TestSortByKey(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 200 {
		rules := make([]Rule, random.IntN(200))
		entries := make([]prefixRule, len(rules))
		order := make([]sortKeyChunk, len(rules))
		for i := range rules {
			rules[i] = Rule{Line: i, Length: 1, Allow: random.IntN(2) == 0}
			key := strings.Repeat("/segment", random.IntN(3)) + strings.Repeat("\xff",
				random.IntN(3)) + strings.Repeat("a", random.IntN(10))
			entries[i], order[i].entryIndex = prefixRule{key, &rules[i]}, int32(i)
		}
		sortPrefixRuleKeys(entries, order, 0)
		if !slices.IsSortedFunc(order, func(a, b sortKeyChunk) int {
			x, y := &entries[a.entryIndex], &entries[b.entryIndex]
			return cmp.Or(cmp.Compare(x.key, y.key), x.rule.compare(y.rule))
		}) {
			t.Fatalf("out of order: %v", order)
		}
	}
}
