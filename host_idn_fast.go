package decorum

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// appendIDNHostFast appends the canonical form of an international host name if lower case and
// Punycode are enough to make it. It reports false for all other names: the idna package, which
// takes several times as long, handles these.
func appendIDNHostFast(b []byte, host string) (name []byte, ok bool) {
	if len(host) > maxHostBytes {
		return b, false
	}
	start := len(b)
	for {
		part, rest, more := strings.Cut(host, ".")
		last := len(b)
		if b, ok = appendIDNLabelFast(b, part); !ok {
			return b[:start], false
		}
		if !more {
			// The idna path also handles names that may be addresses and names with a final dot.
			return b, len(b) > last && b[last] > '9' && len(b)-start <= maxHostBytes
		}
		b, host = append(b, '.'), rest
	}
}

// appendIDNLabelFast is appendIDNHostFast for one label.
func appendIDNLabelFast(b []byte, s string) (name []byte, ok bool) {
	if isASCIIWithoutPunycode(s) {
		b, start := appendLower(b, s), len(b)
		return b, !slices.ContainsFunc(b[start:], func(c byte) bool { return !inClass(c, inHostname) && c != '-' })
	}
	var l hostLabel
	ascii, ok := l.setLowercasedRunes(s)
	switch {
	case !ok:
		return b, false
	case !ascii:
		return appendPunycode(append(b, "xn--"...), &l), !l.hasPunycodePrefix()
	}
	b, start := appendLower(b, s), len(b)
	return b, isStablePunycode(b[start+len("xn--"):])
}

// isStablePunycode reports whether s, the part of a label after "xn--", is the Punycode of stable
// runes: see isStableRune.
func isStablePunycode[T byteSeq](s T) bool {
	var l hostLabel
	if !decodePunycode(&l, s) || l.hasPunycodePrefix() {
		return false
	}
	for _, r := range l.runes[:l.runeCount] {
		if !isStableRune(r) {
			return false
		}
	}
	return true
}

// setLowercasedRunes stores s in l, which must be empty, with ASCII letters in lower case. ascii
// reports whether all runes are ASCII; ok is false if s is too long or contains an unstable rune.
func (l *hostLabel) setLowercasedRunes(s string) (ascii, ok bool) {
	ascii = true
	for _, r := range s {
		switch {
		case l.runeCount == maxLabelBytes:
			return false, false
		case 'A' <= r && r <= 'Z':
			r += 'a' - 'A'
		case !isStableRune(r):
			return false, false
		}
		ascii = ascii && r < utf8.RuneSelf
		l.runes[l.runeCount] = r
		l.runeCount++
	}
	return ascii, true
}

// hasPunycodePrefix reports whether l begins with "xn--".
func (l *hostLabel) hasPunycodePrefix() bool {
	return l.runeCount >= 4 && l.runes[0] == 'x' && l.runes[1] == 'n' && l.runes[2] == '-' && l.runes[3] == '-'
}

// isStableRune reports whether UTS 46 keeps r unchanged at every position: r is valid, is written
// from left to right, does not compose with a stable rune before or after it, and puts no condition
// on its neighbours. More runes are stable; those listed here cover most names.
func isStableRune(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return inClass(byte(r), inHostname) || r == '-'
	case r < 'ß':
		return false
	case r <= 'ÿ':
		return r != '÷'
	case r < 'ſ': // Latin Extended-A
		return unicode.IsLower(r) && r != 'ĳ' && r != 'ŀ' && r != 'ŉ'
	case r <= 'ώ':
		return r >= 'ά'
	case r <= 'џ':
		return r >= 'а'
	case r <= 'ヺ':
		return r == 'ґ' || 'ぁ' <= r && r <= 'ゖ' || r >= 'ァ'
	case r <= 0x9FA5: // CJK Unified Ideographs of Unicode 1.1
		return r >= 0x4E00 || r == 'ー'
	}
	return '가' <= r && r <= '힣'
}
