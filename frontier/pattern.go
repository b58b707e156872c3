package frontier

import (
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Pattern returns path, with its query, with all that may be counted up or
// drawn by chance replaced by "#": runs of digits, UUIDs, and tokens of letters
// and digits that look drawn (16 of both, or 8 of hexadecimal digits). folded is
// false if there is nothing of the kind: then no other path has that pattern.
func Pattern(path string) (pattern string, folded bool) {
	var b strings.Builder
	for rest := path; rest != ""; {
		n, kind := token(rest)
		switch kind {
		case drawn:
			b.WriteByte('#')
		case plainToken:
			writeFolded(&b, rest[:n])
		default:
			b.WriteString(rest[:n])
		}
		rest = rest[n:]
	}
	pattern = b.String()
	return pattern, pattern != path
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

// writeFolded writes a token with # for each run of digits.
func writeFolded(b *strings.Builder, token string) {
	for i := range len(token) {
		switch {
		case !isDigit(token[i]):
			b.WriteByte(token[i])
		case i == 0 || !isDigit(token[i-1]):
			b.WriteByte('#')
		}
	}
}

// mostPatterns is how many patterns are counted at a time, of all hosts: about
// 4 MiB. When there are more, those with the fewest URLs are forgotten, half of
// all or more.
const mostPatterns = 100_000

// patterns count URLs by host and pattern.
type patterns struct {
	mu     sync.Mutex
	counts map[uint64]int // by hash
}

// take counts a URL, unless there are limit of its kind already.
func (p *patterns) take(host, pattern string, limit int) bool {
	h := fnv.New64a()
	io.WriteString(h, host)
	io.WriteString(h, pattern)
	key := h.Sum64()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counts[key] >= limit {
		return false
	}
	if p.counts == nil {
		p.counts = map[uint64]int{}
	}
	p.counts[key]++
	if len(p.counts) > mostPatterns {
		p.forget()
	}
	return true
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
