package robots

import "strings"

// The reference decides as the requirements are worded, one rule after the
// other and one character after the other, however long that takes. It shares
// no code with what it is compared with.

// A refPatternUnit is one character of a pattern: a "*" that stands for anything, or all
// the ways in which a path may spell it.
type refPatternUnit struct {
	star      bool
	spellings []string
}

// refRule is an allow or disallow line as the reference sees it.
type refRule struct {
	allow    bool
	path     string
	line     int
	units    []refPatternUnit
	anchored bool // the pattern ends where the path ends
	length   int
}

// newRefRule reads the pattern from left to right and then takes off the end
// what means nothing there.
func newRefRule(allow bool, path string, line int) refRule {
	r := refRule{allow: allow, path: path, line: line}
	if strings.HasSuffix(path, "$") {
		r.anchored = true
		path = path[:len(path)-1]
	}
	before := "" // since the last star
	for path != "" {
		u, size := refUnit(before, path)
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
			r.length++
		} else {
			r.length += len(u.spellings[0])
		}
	}
	if r.anchored {
		r.length++
	}
	return r
}

// refUnit returns the first unit of s, and how much of s it takes; before is
// what was read before it. The spelling that counts for the length comes first.
func refUnit(before, s string) (refPatternUnit, int) {
	c := s[0]
	if c == '*' {
		return refPatternUnit{star: true}, 1
	}
	if strings.IndexByte(refOptionallyEscaped, c) >= 0 {
		return refPatternUnit{spellings: []string{s[:1], refEncodeEscape(c)}}, 1
	}
	if !refIsEscape(s) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"#<>", c) >= 0 {
			return refPatternUnit{spellings: []string{refEncodeEscape(c)}}, 1
		}
		return refPatternUnit{spellings: []string{s[:1]}}, 1
	}
	esc := strings.ToUpper(s[:3])
	bare := string(refDecodeEscape(esc))
	switch {
	case strings.Contains(refOptionallyEscaped, bare):
		return refPatternUnit{spellings: []string{esc, bare}}, 3
	case !refIsUnreserved(refDecodeEscape(esc)):
		return refPatternUnit{spellings: []string{esc}}, 3
	case len(before) > 0 && refIsEscape(before[len(before)-1:]+bare+"0"),
		len(before) > 1 && refIsEscape(before[len(before)-2:]+bare):
		return refPatternUnit{spellings: []string{esc}}, 3 // bare it would complete a stray percent sign
	default:
		return refPatternUnit{spellings: []string{bare}}, 3
	}
}

// refOptionallyEscaped lists what a path may have bare or escaped.
const refOptionallyEscaped = "*$'\\^`{|}"

const refHex = "0123456789ABCDEF"

func refIsEscape(s string) bool {
	return len(s) >= 3 && s[0] == '%' &&
		strings.Contains(refHex+"abcdef", s[1:2]) && strings.Contains(refHex+"abcdef", s[2:3])
}

func refDecodeEscape(esc string) rune {
	return rune(strings.Index(refHex, esc[1:2])*16 + strings.Index(refHex, esc[2:3]))
}

func refEncodeEscape(c byte) string { return "%" + refHex[c/16:c/16+1] + refHex[c%16:c%16+1] }

func refIsUnreserved(c rune) bool {
	return strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~", c)
}

// matches fills a table: ok[i][j] says whether the units from the i-th on
// match the path from its j-th octet on.
func (r *refRule) matches(path string) bool {
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

// refCheck returns the rule that decides, nil if none matches.
func refCheck(rules []refRule, path string) *refRule {
	var best *refRule
	for i := range rules {
		r := &rules[i]
		if !r.matches(path) {
			continue
		}
		if best == nil || r.length > best.length || r.length == best.length && r.allow && !best.allow {
			best = r
		}
	}
	return best
}
