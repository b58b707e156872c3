package frontier

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"
)

// Pattern returns path, with its query, with all that may be counted up or
// drawn by chance replaced by "#": runs of digits, UUIDs, and tokens of letters
// and digits that look drawn (16 of both, or 8 of hexadecimal digits). folded is
// false if there is nothing of the kind: then no other path has that pattern.
func Pattern(path string) (pattern string, folded bool) {
	pattern = string(appendPattern(nil, path))
	return pattern, pattern != path
}

func appendPattern(to []byte, path string) []byte {
	for path != "" {
		n, kind := token(path)
		switch kind {
		case drawn:
			to = append(to, '#')
		case plainToken:
			to = appendFolded(to, path[:n])
		default:
			to = append(to, path[:n]...)
		}
		path = path[n:]
	}
	return to
}

// Kinds of tokens.
const (
	separator  = iota // no token: it stays
	plainToken        // its digits are folded
	drawn             // as a whole
)

const uuidLength = len("00000000-0000-0000-0000-000000000000")

// token returns the length and the kind of what s begins with.
func token(s string) (n, kind int) {
	if s[0] == '%' && len(s) >= 3 {
		return 3, separator // an escape is one character
	}
	if len(s) >= uuidLength && isUUID(s[:uuidLength]) && (len(s) == uuidLength || !isAlphanumeric(s[uuidLength])) {
		return uuidLength, drawn
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
		return n, drawn
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

// appendFolded appends a token with # for each run of digits.
func appendFolded(to []byte, token string) []byte {
	for i := range len(token) {
		switch {
		case !isDigit(token[i]):
			to = append(to, token[i])
		case i == 0 || !isDigit(token[i-1]):
			to = append(to, '#')
		}
	}
	return to
}

// maxPatterns is how many patterns are counted at a time, of all hosts: about
// 4 MiB. When there are more, those with the fewest URLs are forgotten, half of
// all or more.
const maxPatterns = 100_000

// patterns count URLs by host and pattern.
type patterns struct {
	mu           sync.Mutex
	counts       map[uint64]int // by patternKey
	largestCount int            // the highest of the counts
}

// hashSeed is that of patternKey: a site cannot know which of its patterns share
// a count.
var hashSeed = maphash.MakeSeed()

// patternKey returns what stands for host and pattern in this process; 0 if no
// other path has the pattern.
func patternKey(host, path string) uint64 {
	var buf [256]byte
	pattern := appendPattern(buf[:0], path)
	if string(pattern) == path {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(hashSeed)
	h.WriteString(host)
	h.Write(pattern)
	return max(1, h.Sum64())
}

// counted returns how many URLs of the kind there are.
func (p *patterns) counted(key uint64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[key]
}

// highest returns the highest count.
func (p *patterns) highest() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.largestCount
}

// count counts a URL, unless its kind is none.
func (p *patterns) count(key uint64) {
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
		p.forget()
	}
}

// forget drops the patterns with the fewest URLs. It requires p.mu.
func (p *patterns) forget() {
	sizes := make([]int, 0, len(p.counts))
	for _, n := range p.counts {
		sizes = append(sizes, n)
	}
	slices.Sort(sizes)
	median := sizes[len(sizes)/2]
	maps.DeleteFunc(p.counts, func(_ uint64, n int) bool { return n <= median })
}
