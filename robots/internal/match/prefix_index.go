package match

import "strings"

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
