package match

import (
	"strconv"
	"strings"
)

// A Pattern is the path of a rule, cut at its wildcards. It matches a path that begins with head and
// contains the literals of tail after it, in order.
type Pattern struct {
	head     literal
	tail     []literal // the literals after each wildcard, none of them empty
	anchored bool      // the path must end with the last literal
	Length   int       // the length that ranks the rule, in octets (PREC-16)
}

// CompilePattern compiles the value of an allow or disallow line.
func CompilePattern(path string) Pattern {
	path, anchored := trimEndWildcardsAndAnchor(path)
	part, path, more := strings.Cut(path, "*")
	head, length := newLiteral(part)
	p := Pattern{head: head, anchored: anchored, Length: length}
	if anchored {
		p.Length++ // the final $
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

// CompileLiteral returns a pattern that matches the paths that begin with path, in which "*" and "$"
// are ordinary characters.
func CompileLiteral(path string) Pattern {
	head, length := newLiteral(path)
	return Pattern{head: head, Length: length}
}

// NumWildcards returns the number of wildcards in p that precede a literal.
func (p *Pattern) NumWildcards() int { return len(p.tail) }

// trimEndWildcardsAndAnchor removes "*" and "*$" at the end of a pattern, which have no effect
// (MATCH-08, MATCH-19). It also removes a final "$", which stands for the end of the path (MATCH-18),
// and reports it as anchored.
func trimEndWildcardsAndAnchor(path string) (trimmed string, anchored bool) {
	if inner, ok := strings.CutSuffix(path, "$"); ok {
		if !strings.HasSuffix(inner, "*") {
			return inner, true
		}
		path = inner
	}
	return strings.TrimRight(path, "*"), false
}

// isPrefix reports whether p is a plain prefix, which can go into a prefixIndex. There the longest
// prefix wins. A pattern whose Length exceeds its text, such as "/a**" in the google-oss dialect,
// therefore does not qualify.
func (p *Pattern) isPrefix() bool {
	return len(p.tail) == 0 && !p.anchored && !p.head.hasOptionalEscapes && p.Length == len(p.head.text)
}

// Matches reports whether p matches path. It takes each literal at its first occurrence, which leaves
// the longest rest of the path to the literals after it, so it never has to backtrack (MATCH-26).
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

// compileGoogleOSSRulePatterns compiles the value of an allow or disallow line in the google-oss
// dialect. An allow line for an index page also allows its directory, by the second pattern dir; dir
// is nil for other lines.
func compileGoogleOSSRulePatterns(path string, allow bool) (p Pattern, dir *Pattern) {
	path = EscapeGoogleOSS(path)
	slash := strings.LastIndexByte(path, '/')
	if allow && slash >= 0 && strings.HasPrefix(path[slash:], "/index.htm") {
		f := compileGoogleOSSPattern(path[:slash+1] + "$")
		dir = &f
	}
	return compileGoogleOSSPattern(path), dir
}

// compileGoogleOSSPattern compiles a pattern whose literals are compared byte by byte. Its Length is
// that of path, with every "*" and a final "$".
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

// EscapeGoogleOSS escapes the bytes of a pattern outside ASCII and brings the hex digits of its
// escapes to upper case. It does not normalize the rest, and the google-oss dialect does not
// normalize URLs, so a rule matches only URLs in its own spelling.
func EscapeGoogleOSS(path string) string {
	var b strings.Builder
	done := 0 // path[:done] is in b
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

// Key returns a string that is equal for two patterns that match the same paths and have the same
// Length. Spaces and tabs can separate its parts because literals contain neither.
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
