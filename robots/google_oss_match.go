package robots

import "strings"

// This file chooses groups and reads patterns and URLs as the RobotsMatcher of
// Google's published parser does.

// googleOSSMatchRank returns how specifically a user-agent line names a for the
// google-oss dialect. The parser knows one name, without wider tokens, and
// reads only letters, "_" and "-" of a value: a name with anything else in it
// is never met, and an empty name is met by values that begin with none of
// them. A "*" with white space after it is still for everybody.
func (a Agent) googleOSSMatchRank(value string) agentRank {
	if strings.HasPrefix(value, "*") && (len(value) == 1 || strings.IndexByte(googleOSSBlankChars, value[1]) >= 0) {
		return 1
	}
	name := a.givenName
	if name == "" {
		name = a.Token()
	}
	if equalFoldASCII(name, googleOSSToken(value)) {
		return 0
	}
	return rankNoMatch
}

// googleOSSToken returns the leading letters, "_" and "-" of a user-agent value.
func googleOSSToken(value string) string {
	for i := range len(value) {
		if !isTokenByte(value[i]) || isDigit(value[i]) {
			return value[:i]
		}
	}
	return value
}

// compileGoogleOSSRulePatterns compiles the value of an allow or disallow line. An Allow of an
// index page opens its folder as well, by a pattern of its own.
func compileGoogleOSSRulePatterns(path string, allow bool) (p pattern, dir *pattern) {
	path = googleOSSEscape(path)
	slash := strings.LastIndexByte(path, '/')
	if allow && slash >= 0 && strings.HasPrefix(path[slash:], "/index.htm") {
		f := compileGoogleOSSPattern(path[:slash+1] + "$")
		dir = &f
	}
	return compileGoogleOSSPattern(path), dir
}

// compileGoogleOSSPattern compiles a pattern whose literals are compared byte by byte. It
// counts as long as it is written, with every "*" and a final "$".
func compileGoogleOSSPattern(path string) pattern {
	p := pattern{length: len(path)}
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

// googleOSSEscape escapes the bytes of a pattern beyond ASCII and brings the hex
// digits of its escapes to upper case. All else stays as it is, as do URLs: a
// rule that spells a URL differently does not match it.
func googleOSSEscape(path string) string {
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

// googleOSSPath cuts the path with its query out of a URL as it stands, whether or
// not that is one. A path that does not begin with a slash gets one; a URL
// without any has the path "/".
func googleOSSPath(url string) string {
	if rest, ok := strings.CutPrefix(url, "//"); ok {
		url = rest
	}
	const starts = "/?;"
	page, _, _ := strings.Cut(url, "#")
	i := strings.Index(url, "://")
	if early := strings.IndexAny(url, starts); i < 0 || early >= 0 && early < i {
		i = 0 // what stands before :// is no scheme
	} else {
		i += len("://")
	}
	if i > len(page) {
		return "/"
	}
	start := strings.IndexAny(page[i:], starts)
	if start < 0 {
		return "/"
	}
	path, _, _ := strings.Cut(page[i+start:], "\x00") // it is read as a text of C
	if path[0] != '/' {
		path = "/" + path
	}
	return path
}
