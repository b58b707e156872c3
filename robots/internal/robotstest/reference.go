package robotstest

import "strings"

// The reference implements the wording of the requirements directly: one rule after the other, one
// character after the other, without regard to speed. It shares no code with package match.

// A patternChar is one character of a pattern: a wildcard, or all spellings of a character in a path.
type patternChar struct {
	star      bool
	spellings []string // the first one counts for the length of the rule
}

// A ReferenceRule is an allow or disallow line in the reference.
type ReferenceRule struct {
	Allow    bool
	Path     string
	Line     int
	Length   int // in octets (PREC-16)
	units    []patternChar
	anchored bool // the pattern must match the path to its end
}

// NewReferenceRule compiles a pattern: it reads it from left to right and then removes the characters
// at the end that have no effect.
func NewReferenceRule(allow bool, path string, line int) ReferenceRule {
	r := ReferenceRule{Allow: allow, Path: path, Line: line}
	if strings.HasSuffix(path, "$") {
		r.anchored = true
		path = path[:len(path)-1]
	}
	before := "" // the pattern since the last star, as first spelt
	for path != "" {
		u, size := nextUnit(before, path)
		r.units = append(r.units, u)
		path = path[size:]
		if before += strings.Join(u.spellings[:min(1, len(u.spellings))], ""); u.star {
			before = ""
		}
	}
	// A star at the end has no effect, and takes the effect of a "$" after it.
	for n := len(r.units); n > 0 && r.units[n-1].star; n = len(r.units) {
		r.units, r.anchored = r.units[:n-1], false
	}
	for _, u := range r.units {
		if u.star {
			r.Length++
		} else {
			r.Length += len(u.spellings[0])
		}
	}
	if r.anchored {
		r.Length++
	}
	return r
}

// nextUnit returns the first character of the pattern s and the number of bytes that spell it. before
// is the part of the pattern before s.
func nextUnit(before, s string) (patternChar, int) {
	c := s[0]
	if c == '*' {
		return patternChar{star: true}, 1
	}
	if strings.IndexByte(optionallyEscaped, c) >= 0 {
		return patternChar{spellings: []string{s[:1], encodeEscape(c)}}, 1
	}
	if !IsEscape(s) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"#<>", c) >= 0 {
			return patternChar{spellings: []string{encodeEscape(c)}}, 1
		}
		return patternChar{spellings: []string{s[:1]}}, 1
	}
	esc := strings.ToUpper(s[:3])
	bare := string(decodeEscape(esc))
	switch {
	case strings.Contains(optionallyEscaped, bare):
		return patternChar{spellings: []string{esc, bare}}, 3
	case !isUnreserved(decodeEscape(esc)):
		return patternChar{spellings: []string{esc}}, 3
	case len(before) > 0 && IsEscape(before[len(before)-1:]+bare+"0"),
		len(before) > 1 && IsEscape(before[len(before)-2:]+bare):
		return patternChar{spellings: []string{esc}}, 3 // unescaped it would complete a stray percent sign
	default:
		return patternChar{spellings: []string{bare}}, 3
	}
}

// optionallyEscaped lists the characters that a path may contain bare or escaped.
const optionallyEscaped = "*$'\\^`{|}"

const upperHex = "0123456789ABCDEF"

// IsEscape reports whether s begins with a percent sign and two hex digits.
func IsEscape(s string) bool {
	return len(s) >= 3 && s[0] == '%' &&
		strings.Contains(upperHex+"abcdef", s[1:2]) && strings.Contains(upperHex+"abcdef", s[2:3])
}

func decodeEscape(esc string) rune {
	return rune(strings.Index(upperHex, esc[1:2])*16 + strings.Index(upperHex, esc[2:3]))
}

func encodeEscape(c byte) string { return "%" + upperHex[c/16:c/16+1] + upperHex[c%16:c%16+1] }

func isUnreserved(c rune) bool {
	return strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~", c)
}

// Matches reports whether the rule matches a path. It fills a table from the end: ok[i][j] says
// whether units[i:] matches path[j:].
func (r *ReferenceRule) Matches(path string) bool {
	ok := make([][]bool, len(r.units)+1)
	for i := len(r.units); i >= 0; i-- {
		ok[i] = make([]bool, len(path)+1)
		for j := len(path); j >= 0; j-- {
			switch {
			case i == len(r.units):
				ok[i][j] = !r.anchored || j == len(path)
			case r.units[i].star:
				ok[i][j] = ok[i+1][j] || j < len(path) && ok[i][j+1]
			default:
				for _, s := range r.units[i].spellings {
					ok[i][j] = ok[i][j] || strings.HasPrefix(path[j:], s) && ok[i+1][j+len(s)]
				}
			}
		}
	}
	return ok[0][0]
}

// DecidingRule returns the rule that decides, nil if none matches.
func DecidingRule(rules []ReferenceRule, path string) *ReferenceRule {
	var best *ReferenceRule
	for i := range rules {
		r := &rules[i]
		if !r.Matches(path) {
			continue
		}
		if best == nil || r.Length > best.Length || r.Length == best.Length && r.Allow && !best.Allow {
			best = r
		}
	}
	return best
}
