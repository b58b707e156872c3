package match

import "strings"

// compileGoogleOSSRulePatterns compiles the value of an allow or disallow line. An Allow of an
// index page opens its folder as well, by a pattern of its own.
func compileGoogleOSSRulePatterns(path string, allow bool) (p Pattern, dir *Pattern) {
	path = EscapeGoogleOSS(path)
	slash := strings.LastIndexByte(path, '/')
	if allow && slash >= 0 && strings.HasPrefix(path[slash:], "/index.htm") {
		f := compileGoogleOSSPattern(path[:slash+1] + "$")
		dir = &f
	}
	return compileGoogleOSSPattern(path), dir
}

// compileGoogleOSSPattern compiles a pattern whose literals are compared byte by byte. It
// counts as long as it is written, with every "*" and a final "$".
func compileGoogleOSSPattern(path string) Pattern {
	p := Pattern{Length: len(path)}
	path, p.anchored = trimEndWildcardsAndAnchor(path)
	var more bool
	p.head.text, path, more = strings.Cut(path, "*")
	for more {
		var part string
		if part, path, more = strings.Cut(path, "*"); part != "" {
			p.tail = append(p.tail, literal{text: part})
		}
	}
	return p
}

// EscapeGoogleOSS escapes the bytes of a pattern beyond ASCII and brings the hex
// digits of its escapes to upper case. All else stays as it is, as do URLs: a
// rule that spells a URL differently does not match it.
func EscapeGoogleOSS(path string) string {
	var b strings.Builder
	done := 0 // what of path is in b
	for i := 0; i < len(path); i++ {
		c, size := decodeOctet(path[i:])
		if c < 0x80 && size == 1 {
			continue
		}
		b.WriteString(path[done:i])
		b.Write([]byte{'%', upperHex[c>>4], upperHex[c&15]})
		i += size - 1
		done = i + 1
	}
	if done == 0 {
		return path
	}
	return b.String() + path[done:]
}
