package match

import (
	"encoding/binary"
	"slices"
	"strings"
)

// A prefixIndex finds the longest of many keys that a path begins with, in time logarithmic in their
// number.
//
// The keys are sorted. Let k be the last key that does not sort after the path. k need not be a
// prefix of the path, but every key that is a prefix of the path is k or a prefix of k: all keys that
// sort between such a prefix and the path begin with it. longestPrefixIndexes therefore links each
// key to the longest other key that is its prefix, and the result is the first key along the links
// from k that is not longer than the common beginning of k and the path.
type prefixIndex struct {
	keys                 []string
	longestPrefixIndexes []int32 // by key: the index of the longest key that is a proper prefix of it; -1 if none
	rules                []*Rule // by key
}

// A prefixRule is a rule and the prefix that it matches.
type prefixRule struct {
	key  string
	rule *Rule
}

// newPrefixIndex returns an index of the entries. Of several rules with the same key it keeps the one
// that takes precedence.
func newPrefixIndex(entries []prefixRule) prefixIndex {
	// Sort indexes with numeric keys, which is faster than sorting the entries.
	order := make([]sortKeyChunk, len(entries))
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
			continue // a rule with the same key takes precedence
		}
		// The longest prefix of this key is the key before it, or is on that key's links.
		for j >= 0 && !strings.HasPrefix(e.key, p.keys[j]) {
			j = p.longestPrefixIndexes[j]
		}
		p.keys, p.longestPrefixIndexes, p.rules = append(p.keys, e.key),
			append(p.longestPrefixIndexes, j), append(p.rules, e.rule)
	}
	return p
}

// longestMatch returns the rule with the longest key that path begins with, or nil.
func (p *prefixIndex) longestMatch(path string) *Rule {
	// Find the last key that does not sort after path: keys[:low] do not, keys[high:] do.
	low, high := 0, len(p.keys)
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
	// Follow the links to the first key that is a prefix of path.
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

// A sortKeyChunk is eight bytes of the key of an entry.
type sortKeyChunk struct {
	bytes      uint64 // big endian, zeros after the end of the key
	entryIndex int32
}

// sortPrefixRuleKeys sorts order by key, and equal keys by Rule.compare. All keys of order must have
// their first depth bytes in common. It sorts by the next eight bytes, and recursively by those after
// them where these are equal. That is faster than comparing strings, because the paths of a site
// begin alike.
func sortPrefixRuleKeys(entries []prefixRule, order []sortKeyChunk, depth int) {
	for i := range order {
		order[i].bytes = eightBytesAt(entries[order[i].entryIndex].key, depth)
	}
	radixSort(order)
	// Sort each run of equal chunks by the bytes that follow.
	for len(order) > 0 {
		n := 1
		for n < len(order) && order[n].bytes == order[0].bytes {
			n++
		}
		switch same := order[:n]; {
		case n == 1:
		case byte(same[0].bytes) == 0: // keys do not contain NUL, so these end here and are equal
			slices.SortFunc(same, func(a, b sortKeyChunk) int {
				return entries[a.entryIndex].rule.compare(entries[b.entryIndex].rule)
			})
		default:
			sortPrefixRuleKeys(entries, same, depth+8)
		}
		order = order[n:]
	}
}

// minRadixSortLen is the length from which on a radix sort is faster than comparing.
const minRadixSortLen = 100

// radixSort sorts order by its eight bytes. For long slices it uses a radix sort from the last byte
// to the first, which is fast because its branches do not depend on the data.
func radixSort(order []sortKeyChunk) {
	if len(order) < minRadixSortLen {
		slices.SortFunc(order, sortKeyChunk.compare)
		return
	}
	from, to := order, make([]sortKeyChunk, len(order))
	for shift := 0; shift < 64; shift += 8 {
		// Count the words per byte value, then turn the counts into the index of the next word.
		var next [256]int
		for _, w := range from {
			next[byte(w.bytes>>shift)]++
		}
		if next[byte(from[0].bytes>>shift)] == len(from) {
			continue // all words have the same byte
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

// compare compares the bytes of a and b as cmp.Compare does, which is slower because it handles NaN.
func (a sortKeyChunk) compare(b sortKeyChunk) int {
	if a.bytes < b.bytes {
		return -1
	}
	if a.bytes > b.bytes {
		return 1
	}
	return 0
}

// eightBytesAt returns s[i:i+8] as a big-endian number, so that numbers compare as the bytes do. It
// pads with zeros after the end of s.
func eightBytesAt(s string, i int) uint64 {
	var b [8]byte
	copy(b[:], s[min(i, len(s)):])
	return binary.BigEndian.Uint64(b[:])
}
