package frontier

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"
)

// URLPattern returns path, with its query, with all that may be counted up or
// drawn by chance replaced by "#": runs of digits, UUIDs, and tokens of letters
// and digits that look drawn (16 of both, or 8 of hexadecimal digits). masked is
// false if there is nothing of the kind: then no other path has that pattern.
func URLPattern(path string) (pattern string, masked bool) {
	pattern = string(appendPathPattern(nil, path))
	return pattern, pattern != path
}

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

// Kinds of tokens.
const (
	separator   = iota // no token: it stays
	plainToken         // its digits are folded
	randomToken        // as a whole
)

const uuidLength = len("00000000-0000-0000-0000-000000000000")

// scanPathToken returns the length and the kind of what s begins with.
func scanPathToken(s string) (n, kind int) {
	if s[0] == '%' && len(s) >= 3 {
		return 3, separator // an escape is one character
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

// appendDigitsMasked appends a token with # for each run of digits.
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

// maxPatterns is how many patterns are counted at a time, of all hosts: about
// 4 MiB. When there are more, those with the fewest URLs are forgotten, half of
// all or more.
const maxPatterns = 100_000

// patternCounts count URLs by host and pattern.
type patternCounts struct {
	mu           sync.Mutex
	counts       map[uint64]int // by urlPatternKey
	largestCount int            // the highest of the counts
}

// patternHashSeed is that of urlPatternKey: a site cannot know which of its patterns share
// a count.
var patternHashSeed = maphash.MakeSeed()

// urlPatternKey returns what stands for host and pattern in this process; 0 if no
// other path has the pattern.
func urlPatternKey(host, path string) uint64 {
	var buf [256]byte
	pattern := appendPathPattern(buf[:0], path)
	if string(pattern) == path {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(patternHashSeed)
	h.WriteString(host)
	h.Write(pattern)
	return max(1, h.Sum64())
}

// urlCount returns how many URLs of the kind there are.
func (p *patternCounts) urlCount(key uint64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[key]
}

// highestCount returns the highest count.
func (p *patternCounts) highestCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.largestCount
}

// addURL counts a URL, unless its kind is none.
func (p *patternCounts) addURL(key uint64) {
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
	if len(p.counts) > maxPatterns {
		p.dropSmallerHalf()
	}
}

// dropSmallerHalf drops the patterns with the fewest URLs. It requires p.mu.
func (p *patternCounts) dropSmallerHalf() {
	sizes := slices.Sorted(maps.Values(p.counts))
	median := sizes[len(sizes)/2]
	maps.DeleteFunc(p.counts, func(_ uint64, n int) bool { return n <= median })
}
