package match

import (
	"encoding/binary"
	"slices"
	"strings"
)

// prefixIndex finds the longest of many keys that a path begins with, in time
// logarithmic in their number.
//
// The keys are sorted. The last key not after the path need not be a prefix of
// it, but all prefixes of the path are that key or prefixes of that key: a key
// between a prefix and the path begins with the prefix itself. So each key
// knows the longest other key that is a prefix of it, and the answer is the
// first along that chain that is no longer than what key and path share.
type prefixIndex struct {
	keys                 []string
	longestPrefixIndexes []int32 // the longest key that is a proper prefix of this one; -1 if none
	rules                []*Rule
}

// prefixRule is a rule and the prefix that it matches.
type prefixRule struct {
	key  string
	rule *Rule
}

// newPrefixIndex makes the table; of rules with the same key it keeps the one
// that wins.
func newPrefixIndex(entries []prefixRule) prefixIndex {
	order := make([]sortKeyChunk, len(entries)) // sorting numbers is faster than sorting pointers
	for i := range order {
		order[i].entryIndex = int32(i)
	}
	sortPrefixRuleKeys(entries, order, 0)
	p := prefixIndex{
		keys:                 make([]string, 0, len(order)),
		longestPrefixIndexes: make([]int32, 0, len(order)),
		rules:                make([]*Rule, 0, len(order)),
	}
	for _, o := range order {
		e := &entries[o.entryIndex]
		j := int32(len(p.keys)) - 1
		if j >= 0 && p.keys[j] == e.key {
			continue
		}
		for j >= 0 && !strings.HasPrefix(e.key, p.keys[j]) {
			j = p.longestPrefixIndexes[j]
		}
		p.keys, p.longestPrefixIndexes, p.rules = append(p.keys, e.key), append(p.longestPrefixIndexes, j), append(p.rules, e.rule)
	}
	return p
}

// longestMatch returns the rule with the longest key that path begins with, nil if
// there is none.
func (p *prefixIndex) longestMatch(path string) *Rule {
	low, high := 0, len(p.keys) // keys before low are not after path, those from high on are
	for low < high {
		if mid := int(uint(low+high) / 2); p.keys[mid] <= path {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 {
		return nil
	}
	i := int32(low - 1)
	shared := sharedPrefixLen(p.keys[i], path)
	for i >= 0 && len(p.keys[i]) > shared {
		i = p.longestPrefixIndexes[i]
	}
	if i < 0 {
		return nil
	}
	return p.rules[i]
}

// sharedPrefixLen returns how many bytes a and b have in common at their start.
func sharedPrefixLen(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// A sortKeyChunk is eight bytes of an entry's key.
type sortKeyChunk struct {
	bytes      uint64
	entryIndex int32
}

// sortPrefixRuleKeys sorts order by key, and equal keys by rank. It compares eight bytes
// at a time, which it has at hand, and those after them only where they are
// equal: that is faster than comparing strings, as the paths of a site begin
// alike. All keys of order have their first depth bytes in common.
func sortPrefixRuleKeys(entries []prefixRule, order []sortKeyChunk, depth int) {
	for i := range order {
		order[i].bytes = eightBytesAt(entries[order[i].entryIndex].key, depth)
	}
	radixSort(order)
	for len(order) > 0 {
		n := 1
		for n < len(order) && order[n].bytes == order[0].bytes {
			n++
		}
		switch same := order[:n]; {
		case n == 1:
		case byte(same[0].bytes) == 0: // no key has this byte, so these end here
			slices.SortFunc(same, func(a, b sortKeyChunk) int { return entries[a.entryIndex].rule.compare(entries[b.entryIndex].rule) })
		default:
			sortPrefixRuleKeys(entries, same, depth+8)
		}
		order = order[n:]
	}
}

// minRadixSortLen is from how many on sorting by counting pays.
const minRadixSortLen = 100

// radixSort sorts by the eight bytes: many by counting, from the last byte to
// the first, as no branch of that depends on the data.
func radixSort(order []sortKeyChunk) {
	if len(order) < minRadixSortLen {
		slices.SortFunc(order, sortKeyChunk.compare)
		return
	}
	from, to := order, make([]sortKeyChunk, len(order))
	for shift := 0; shift < 64; shift += 8 {
		var next [256]int // where the next word with this byte goes
		for _, w := range from {
			next[byte(w.bytes>>shift)]++
		}
		if next[byte(from[0].bytes>>shift)] == len(from) {
			continue // they all have the same
		}
		sum := 0
		for b, n := range next {
			next[b], sum = sum, sum+n
		}
		for _, w := range from {
			b := byte(w.bytes >> shift)
			to[next[b]] = w
			next[b]++
		}
		from, to = to, from
	}
	copy(order, from)
}

// compare is cmp.Compare, which costs more as it knows of NaN.
func (a sortKeyChunk) compare(b sortKeyChunk) int {
	if a.bytes < b.bytes {
		return -1
	}
	if a.bytes > b.bytes {
		return 1
	}
	return 0
}

// eightBytesAt returns the eight bytes of s from i on, as a number that compares as
// they do; zeros where s ends.
func eightBytesAt(s string, i int) uint64 {
	var b [8]byte
	copy(b[:], s[min(i, len(s)):])
	return binary.BigEndian.Uint64(b[:])
}
