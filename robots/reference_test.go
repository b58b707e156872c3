package robots

import "strings"

// The reference decides as the requirements are worded, one rule after the
// other and one character after the other, however long that takes. It shares
// no code with what it is compared with.

// A unit is one character of a pattern: a "*" that stands for anything, or all
// the ways in which a path may spell it.
type unit struct {
	star  bool
	spelt []string
}

// refRule is an allow or disallow line as the reference sees it.
type refRule struct {
	allow  bool
	path   string
	line   int
	units  []unit
	end    bool // the pattern ends where the path ends
	length int
}

// newRefRule reads the pattern from left to right and then takes off the end
// what means nothing there.
func newRefRule(allow bool, path string, line int) refRule {
	r := refRule{allow: allow, path: path, line: line}
	if strings.HasSuffix(path, "$") {
		r.end = true
		path = path[:len(path)-1]
	}
	before := "" // since the last star
	for path != "" {
		u, size := refUnit(before, path)
		r.units = append(r.units, u)
		path = path[size:]
		if before += strings.Join(u.spelt[:min(1, len(u.spelt))], ""); u.star {
			before = ""
		}
	}
	for n := len(r.units); n > 0 && r.units[n-1].star; n = len(r.units) {
		r.units, r.end = r.units[:n-1], false
	}
	for _, u := range r.units {
		if u.star {
			r.length++
		} else {
			r.length += len(u.spelt[0])
		}
	}
	if r.end {
		r.length++
	}
	return r
}

// refUnit returns the first unit of s, and how much of s it takes; before is
// what was read before it. The spelling that counts for the length comes first.
func refUnit(before, s string) (unit, int) {
	c := s[0]
	if c == '*' {
		return unit{star: true}, 1
	}
	if strings.IndexByte(refEither, c) >= 0 {
		return unit{spelt: []string{s[:1], refEscaped(c)}}, 1
	}
	if !refEscape(s) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"#<>", c) >= 0 {
			return unit{spelt: []string{refEscaped(c)}}, 1
		}
		return unit{spelt: []string{s[:1]}}, 1
	}
	esc := strings.ToUpper(s[:3])
	bare := string(refByte(esc))
	switch {
	case strings.Contains(refEither, bare):
		return unit{spelt: []string{esc, bare}}, 3
	case !refUnreserved(refByte(esc)):
		return unit{spelt: []string{esc}}, 3
	case len(before) > 0 && refEscape(before[len(before)-1:]+bare+"0"),
		len(before) > 1 && refEscape(before[len(before)-2:]+bare):
		return unit{spelt: []string{esc}}, 3 // bare it would complete a stray percent sign
	default:
		return unit{spelt: []string{bare}}, 3
	}
}

// refEither lists what a path may have bare or escaped.
const refEither = "*$'\\^`{|}"

const refHex = "0123456789ABCDEF"

func refEscape(s string) bool {
	return len(s) >= 3 && s[0] == '%' &&
		strings.Contains(refHex+"abcdef", s[1:2]) && strings.Contains(refHex+"abcdef", s[2:3])
}

func refByte(esc string) rune {
	return rune(strings.Index(refHex, esc[1:2])*16 + strings.Index(refHex, esc[2:3]))
}

func refEscaped(c byte) string { return "%" + refHex[c/16:c/16+1] + refHex[c%16:c%16+1] }

func refUnreserved(c rune) bool {
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
				ok[i][j] = !r.end || j == len(path)
			case r.units[i].star:
				ok[i][j] = ok[i+1][j] || j < len(path) && ok[i][j+1]
			default:
				for _, s := range r.units[i].spelt {
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
