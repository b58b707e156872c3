package match

import (
	"strconv"
	"strings"
)

// A Pattern is the path of a rule, cut at its wildcards. It matches a path
// that begins with head and holds the literals of tail after it, in order.
type Pattern struct {
	head     literal
	tail     []literal
	anchored bool // the last literal ends the path
	Length   int  // as PREC-16 counts
}

// CompilePattern compiles the value of an allow or disallow line.
func CompilePattern(path string) Pattern {
	path, anchored := trimEndWildcardsAndAnchor(path)
	part, path, more := strings.Cut(path, "*")
	head, length := newLiteral(part)
	p := Pattern{head: head, anchored: anchored, Length: length}
	if anchored {
		p.Length++ // a final $ counts one
	}
	for more {
		part, path, more = strings.Cut(path, "*")
		l, length := newLiteral(part)
		p.Length += len("*") + length
		if part != "" {
			p.tail = append(p.tail, l)
		}
	}
	return p
}

// CompileLiteral returns the pattern of the paths that begin with path, in which "*" and
// "$" are characters.
func CompileLiteral(path string) Pattern {
	head, length := newLiteral(path)
	return Pattern{head: head, Length: length}
}

// NumWildcards returns how many wildcards p has that stand before a literal.
func (p *Pattern) NumWildcards() int { return len(p.tail) }

// trimEndWildcardsAndAnchor removes what means nothing at the end of a pattern, "*" and "*$"
// (MATCH-08, MATCH-19), and a "$" that means the end of the path (MATCH-18).
func trimEndWildcardsAndAnchor(path string) (trimmed string, anchored bool) {
	if inner, ok := strings.CutSuffix(path, "$"); ok {
		if !strings.HasSuffix(inner, "*") {
			return inner, true
		}
		path = inner
	}
	return strings.TrimRight(path, "*"), false
}

// isPrefix reports whether p is no more than the beginning of a path. Of
// prefixes the longest wins, so one that counts for more than its length, as
// "/a**" does in the google-oss dialect, is none.
func (p *Pattern) isPrefix() bool {
	return len(p.tail) == 0 && !p.anchored && !p.head.hasOptionalEscapes && p.Length == len(p.head.text)
}

// Matches reports whether p matches path. Each literal is taken where it first
// occurs; that leaves the most of the path to those after it, so no choice is
// ever undone (MATCH-26).
func (p *Pattern) Matches(path string) bool {
	n := p.head.matchedPrefixLen(path)
	if n < 0 {
		return false
	}
	path = path[n:]
	for i := range p.tail {
		l := &p.tail[i]
		if p.anchored && i == len(p.tail)-1 {
			return l.isSuffixOf(path)
		}
		if n = l.indexEnd(path); n < 0 {
			return false
		}
		path = path[n:]
	}
	return !p.anchored || path == ""
}

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

// Key returns what two patterns have in common that match and count the same. No
// literal has a space, nor a tab.
func (p *Pattern) Key() string {
	parts := []string{strconv.Itoa(p.Length), p.head.text}
	for _, l := range p.tail {
		parts = append(parts, l.text)
	}
	if p.anchored {
		parts = append(parts, "\t")
	}
	return strings.Join(parts, " ")
}
