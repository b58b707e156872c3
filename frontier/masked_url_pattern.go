package frontier

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"
)

// URLPattern returns path, which may include a query, with "#" in place of everything that may be a
// counter or random: runs of digits, UUIDs, and tokens that mix letters and digits (16 characters,
// or 8 if they are hexadecimal). masked is false if nothing was replaced; no other path then has
// that pattern.
func URLPattern(path string) (pattern string, masked bool) {
	pattern = string(appendPathPattern(nil, path))
	return pattern, pattern != path
}

// appendPathPattern appends the pattern of path to dst.
func appendPathPattern(dst []byte, path string) []byte {
	for path != "" {
		n, kind := scanPathToken(path)
		switch kind {
		case randomToken:
			dst = append(dst, '#')
		case plainToken:
			dst = appendDigitsMasked(dst, path[:n])
		default:
			dst = append(dst, path[:n]...)
		}
		path = path[n:]
	}
	return dst
}

// The kinds of tokens that scanPathToken returns.
const (
	separator   = iota // not a token: copied
	plainToken         // its runs of digits are replaced
	randomToken        // replaced as a whole
)

const uuidLength = len("00000000-0000-0000-0000-000000000000")

// scanPathToken returns the length and the kind of the first token or separator of s, which is not
// empty.
func scanPathToken(s string) (n, kind int) {
	if s[0] == '%' && len(s) >= 3 {
		return 3, separator // an escape stands for one character
	}
	if len(s) >= uuidLength && isUUID(s[:uuidLength]) && (len(s) == uuidLength || !isAlphanumeric(s[uuidLength])) {
		return uuidLength, randomToken
	}
	var digits, letters, beyondHex int
	for n < len(s) && isAlphanumeric(s[n]) {
		switch {
		case isDigit(s[n]):
			digits++
		default:
			letters++
			if s[n]|0x20 > 'f' {
				beyondHex++
			}
		}
		n++
	}
	switch {
	case n == 0:
		return 1, separator
	// A long mix of letters and digits is unlikely to be a word or a number.
	case digits > 0 && letters > 0 && (n >= 16 || n >= 8 && beyondHex == 0):
		return n, randomToken
	}
	return n, plainToken
}

func isUUID(s string) bool {
	for i := range len(s) {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (s[i] == '-') {
			return false
		}
		if s[i] != '-' && !isDigit(s[i]) && (s[i]|0x20 < 'a' || s[i]|0x20 > 'f') {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isAlphanumeric(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }

// appendDigitsMasked appends token to dst, with "#" for each run of digits.
func appendDigitsMasked(dst []byte, token string) []byte {
	for i := range len(token) {
		switch {
		case !isDigit(token[i]):
			dst = append(dst, token[i])
		case i == 0 || !isDigit(token[i-1]):
			dst = append(dst, '#')
		}
	}
	return dst
}

// maxCountedGroups is how many groups of URLs, such as patterns, of all hosts are counted at a time, in
// about 4 MiB. If there are more, at least half of them are dropped, those with the fewest URLs.
const maxCountedGroups = 100_000

// urlGroupCounts counts URLs by group: by host and pattern, or by host alone.
type urlGroupCounts struct {
	mu           sync.Mutex     // guards counts and largestCount
	counts       map[uint64]int // by urlGroupKey
	largestCount int            // the highest of counts
}

// patternHashSeed is the random seed of urlGroupKey, so that a site cannot know which of its
// patterns share a count.
var patternHashSeed = maphash.MakeSeed()

// urlPatternKey returns the urlGroupKey of host and path's pattern; 0 if no other path has the pattern.
func urlPatternKey(host, path string) uint64 {
	var buf [256]byte
	pattern := appendPathPattern(buf[:0], path)
	if string(pattern) == path {
		return 0
	}
	return urlGroupKey(host, pattern)
}

// urlGroupKey returns a hash of host and group, valid in this process. It is not 0.
func urlGroupKey(host string, group []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(patternHashSeed)
	h.WriteString(host)
	h.Write(group)
	return max(1, h.Sum64())
}

// urlCount returns how many URLs have been counted for key.
func (p *urlGroupCounts) urlCount(key uint64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[key]
}

// highestCount returns the highest count of a group.
func (p *urlGroupCounts) highestCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.largestCount
}

// addURL counts a URL of key. It ignores the key 0.
func (p *urlGroupCounts) addURL(key uint64) {
	if key == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counts == nil {
		p.counts = map[uint64]int{}
	}
	p.counts[key]++
	p.largestCount = max(p.largestCount, p.counts[key])
	if len(p.counts) > maxCountedGroups {
		p.dropSmallerHalf()
	}
}

// dropSmallerHalf drops the groups with the fewest URLs. The caller holds p.mu.
func (p *urlGroupCounts) dropSmallerHalf() {
	sizes := slices.Sorted(maps.Values(p.counts))
	median := sizes[len(sizes)/2]
	maps.DeleteFunc(p.counts, func(_ uint64, n int) bool { return n <= median })
}
