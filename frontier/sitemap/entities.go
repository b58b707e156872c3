package sitemap

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf8"
)

// errUnknownEntity is why text is not used that refers to what is not defined here.
var errUnknownEntity = errors.New("unknown entity")

// decodeReferences returns src with its references replaced, in buf if there are any. An
// unknown one is left as it stands, and errUnknownEntity returned. An "&" that begins
// none stands for itself: many a sitemap does not escape it.
func decodeReferences(buf *[]byte, src []byte) (decoded []byte, err error) {
	if bytes.IndexByte(src, '&') < 0 {
		return src, nil
	}
	dst := (*buf)[:0]
	for {
		i := bytes.IndexByte(src, '&')
		if i < 0 {
			*buf = append(dst, src...)
			return *buf, err
		}
		dst = append(dst, src[:i]...)
		src = src[i+1:]
		name, _, closed := bytes.Cut(src[:min(len(src), 32)], []byte(";"))
		if !closed || !isEntityName(name) {
			dst = append(dst, '&')
			continue
		}
		r := entityRune(name)
		if r < 0 {
			dst, err = append(dst, '&'), errUnknownEntity
			continue
		}
		dst, src = utf8.AppendRune(dst, r), src[len(name)+1:]
	}
}

// predefinedEntities are those that XML has without a declaration.
var predefinedEntities = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

// entityRune returns the character that a reference names, or -1.
func entityRune(name []byte) rune {
	if r, ok := predefinedEntities[string(name)]; ok {
		return r
	}
	if name[0] != '#' {
		return -1
	}
	digits, radix := string(name[1:]), 10
	if len(digits) > 0 && digits[0] == 'x' {
		digits, radix = digits[1:], 16
	}
	n, err := strconv.ParseUint(digits, radix, 32)
	if err != nil || n == 0 || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return -1
	}
	return rune(n)
}

// isEntityName reports whether what stands between "&" and ";" can be a reference.
func isEntityName(name []byte) bool {
	for i, c := range name {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && !(i == 0 && c == '#') {
			return false
		}
	}
	return len(name) > 0
}
