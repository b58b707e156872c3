package robots

import (
	"cmp"
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// This file chooses groups and reads URLs as the RobotsMatcher of Google's published
// parser does. Package match compiles its patterns.

// googleOSSMatchRank returns how specifically a user-agent line names a for the
// google-oss dialect. The parser knows one name, without wider tokens, and
// reads only letters, "_" and "-" of a value: a name with anything else in it
// is never met, and an empty name is met by values that begin with none of
// them. A "*" with white space after it is still for everybody.
func (a Agent) googleOSSMatchRank(value string) agentRank {
	if strings.HasPrefix(value, "*") && (len(value) == 1 || strings.IndexByte(googleOSSBlankChars, value[1]) >= 0) {
		return 1
	}
	if equalFoldASCII(cmp.Or(a.givenName, a.Token()), googleOSSToken(value)) {
		return 0
	}
	return rankNoMatch
}

// googleOSSToken returns the leading letters, "_" and "-" of a user-agent value.
func googleOSSToken(value string) string {
	for i := range len(value) {
		if !syntax.IsTokenByte(value[i]) || syntax.IsDigit(value[i]) {
			return value[:i]
		}
	}
	return value
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
