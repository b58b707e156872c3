package robots

import (
	"cmp"
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// The google-oss dialect is Google's published C++ parser (google/robotstxt)
// to the letter. This file reads lines as its RobotsTxtParser does: what it
// takes for a field is wider than the standard, and how it treats odd bytes is
// part of its verdicts.

// maxGoogleOSSLineBytes is how many bytes of a line are read; the rest of the line is
// ignored.
const maxGoogleOSSLineBytes = 2083*8 - 1

// googleOSSBlankChars is what is trimmed off the ends of lines, names and values.
const googleOSSBlankChars = " \t\n\v\f\r"

// googleOSSFieldPrefixes are the beginnings of field names, in any case: what follows them
// plays no part, so that "Disallowed" is Disallow. Common typos are among them.
var googleOSSFieldPrefixes = [...]struct {
	prefix string
	field  syntax.FieldKind
}{
	{"user-agent", syntax.UserAgent}, {"useragent", syntax.UserAgent}, {"user agent", syntax.UserAgent},
	{"allow", syntax.Allow},
	{"disallow", syntax.Disallow}, {"dissallow", syntax.Disallow}, {"dissalow", syntax.Disallow},
	{"disalow", syntax.Disallow}, {"diasllow", syntax.Disallow}, {"disallaw", syntax.Disallow},
	{"sitemap", syntax.Sitemap}, {"site-map", syntax.Sitemap},
}

// skipBOM skips a UTF-8 byte order mark at the start of text, or as much of
// one as there is: each of its bytes is skipped for itself.
func skipBOM(text string) string {
	const bom = "\ufeff"
	n := 0
	for n < len(bom) && n < len(text) && text[n] == bom[n] {
		n++
	}
	return text[n:]
}

// parseGoogleOSSLine reads a line. A NUL ends it, as it ends every text in C.
func parseGoogleOSSLine(s string) (syntax.Line, bool) {
	s = s[:min(len(s), maxGoogleOSSLineBytes)]
	s, _, _ = strings.Cut(s, "\x00")
	s, _, _ = strings.Cut(s, "#")
	s = strings.Trim(s, googleOSSBlankChars)
	name, value, ok := strings.Cut(s, ":")
	if !ok {
		name, value, ok = cutMissingColon(s)
	}
	if !ok {
		return syntax.Line{}, false
	}
	f, ok := parseGoogleOSSFieldName(strings.TrimRight(name, googleOSSBlankChars))
	return syntax.Line{Field: f, Value: strings.Trim(value, googleOSSBlankChars)}, ok
}

// cutMissingColon cuts a line whose author forgot the colon: it has two words, no
// more, with spaces and tabs between them. s is trimmed.
func cutMissingColon(s string) (name, value string, ok bool) {
	i := strings.IndexAny(s, syntax.BlankChars)
	if i < 0 {
		return "", "", false
	}
	value = strings.TrimLeft(s[i:], syntax.BlankChars)
	return s[:i], value, !strings.ContainsAny(value, syntax.BlankChars)
}

// parseGoogleOSSFieldName returns the field that name begins with. The extensions, which
// that parser does not know, are spelt in full.
func parseGoogleOSSFieldName(name string) (syntax.FieldKind, bool) {
	for _, known := range googleOSSFieldPrefixes {
		if n := len(known.prefix); len(name) >= n && equalFoldASCII(name[:n], known.prefix) {
			return known.field, true
		}
	}
	return syntax.ParseFieldKind(name)
}

// equalFoldASCII reports whether s equals ascii, which has no other characters,
// without regard to the case of ASCII letters. With equal lengths folding
// stays within ASCII: no letter beyond it that folds to one of these is a
// single byte.
func equalFoldASCII(s, ascii string) bool {
	return len(s) == len(ascii) && strings.EqualFold(s, ascii)
}

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
