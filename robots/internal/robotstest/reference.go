package robotstest

import "strings"

// The reference decides as the requirements are worded, one rule after the
// other and one character after the other, however long that takes. It shares
// no code with what it is compared with.

// A patternChar is one character of a pattern: a "*" that stands for anything, or all
// the ways in which a path may spell it.
type patternChar struct {
	star      bool
	spellings []string
}

// A ReferenceRule is an allow or disallow line as the reference sees it.
type ReferenceRule struct {
	Allow    bool
	Path     string
	Line     int
	Length   int // as PREC-16 counts
	units    []patternChar
	anchored bool // the pattern ends where the path ends
}

// NewReferenceRule reads the pattern from left to right and then takes off the end
// what means nothing there.
func NewReferenceRule(allow bool, path string, line int) ReferenceRule {
	r := ReferenceRule{Allow: allow, Path: path, Line: line}
	if strings.HasSuffix(path, "$") {
		r.anchored = true
		path = path[:len(path)-1]
	}
	before := "" // since the last star
	for path != "" {
		u, size := nextUnit(before, path)
		r.units = append(r.units, u)
		path = path[size:]
		if before += strings.Join(u.spellings[:min(1, len(u.spellings))], ""); u.star {
			before = ""
		}
	}
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

// nextUnit returns the first unit of s, and how much of s it takes; before is
// what was read before it. The spelling that counts for the length comes first.
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
		return patternChar{spellings: []string{esc}}, 3 // bare it would complete a stray percent sign
	default:
		return patternChar{spellings: []string{bare}}, 3
	}
}

// optionallyEscaped lists what a path may have bare or escaped.
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

// Matches reports whether the rule matches a path. It fills a table: ok[i][j] says whether the units from the i-th on
// match the path from its j-th octet on.
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
