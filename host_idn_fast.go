package decorum

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// appendIDNHostFast appends the canonical form of an international host name, if
// that takes no more than lower case ASCII and Punycode. The idna package
// takes several times as long, and it is asked about everything else.
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
			// A name that may be an address, or ends in a dot, needs a closer look.
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

// isStablePunycode reports whether s, the part of a label behind "xn--", is
// what Punycode makes of settled runes.
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

// setLowercasedRunes puts s into l, which is empty, with ASCII letters in lower case. It
// reports false if s is too long or has a rune that is not settled.
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

// hasPunycodePrefix reports whether l begins as Punycode does.
func (l *hostLabel) hasPunycodePrefix() bool {
	return l.runeCount >= 4 && l.runes[0] == 'x' && l.runes[1] == 'n' && l.runes[2] == '-' && l.runes[3] == '-'
}

// isStableRune reports whether UTS 46 leaves r as it is wherever it stands: it is
// valid, written from left to right, composes with nothing before or behind it
// that is settled, too, and asks nothing of its neighbours. There are more
// such runes; these are what most names are written in.
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
