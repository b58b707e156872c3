package robots

import (
	"cmp"
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// This file implements the google-oss dialect, which reproduces Google's published C++ parser
// (google/robotstxt). The first half parses lines as its RobotsTxtParser does: it recognises more
// spellings of fields than the standard, and its treatment of unusual bytes affects its verdicts.

// maxGoogleOSSLineBytes is the number of bytes of a line that are read; the rest of the line is
// ignored.
const maxGoogleOSSLineBytes = 2083*8 - 1

// googleOSSBlankChars are the characters that are trimmed from lines, names and values.
const googleOSSBlankChars = " \t\n\v\f\r"

// googleOSSFieldPrefixes are prefixes of field names, in any case, and include common typos. The rest
// of the name does not matter: "Disallowed" is Disallow.
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

// skipBOM removes a UTF-8 byte order mark, or the beginning of one, from the start of text.
func skipBOM(text string) string {
	const bom = "\ufeff"
	n := 0
	for n < len(bom) && n < len(text) && text[n] == bom[n] {
		n++
	}
	return text[n:]
}

// parseGoogleOSSLine parses a line and reports whether its field is known. A NUL ends the line, as it
// ends strings in C.
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

// cutMissingColon cuts a line without a colon into field and value. It reports false unless the line
// consists of two words with spaces or tabs between them. s must be trimmed.
func cutMissingColon(s string) (name, value string, ok bool) {
	i := strings.IndexAny(s, syntax.BlankChars)
	if i < 0 {
		return "", "", false
	}
	value = strings.TrimLeft(s[i:], syntax.BlankChars)
	return s[:i], value, !strings.ContainsAny(value, syntax.BlankChars)
}

// parseGoogleOSSFieldName returns the field whose prefix name begins with. Names of extensions, which
// Google's parser does not know, must be complete.
func parseGoogleOSSFieldName(name string) (syntax.FieldKind, bool) {
	for _, known := range googleOSSFieldPrefixes {
		if n := len(known.prefix); len(name) >= n && equalFoldASCII(name[:n], known.prefix) {
			return known.field, true
		}
	}
	return syntax.ParseFieldKind(name)
}

// equalFoldASCII reports whether s equals ascii without regard to the case of ASCII letters. ascii
// must be ASCII. Because the lengths are equal, case folding stays within ASCII: every other letter
// that folds to an ASCII letter takes more than one byte.
func equalFoldASCII(s, ascii string) bool {
	return len(s) == len(ascii) && strings.EqualFold(s, ascii)
}

// The second half chooses groups and reads URLs as the RobotsMatcher of Google's published parser
// does. Package match compiles its patterns.

// googleOSSMatchRank returns the rank of a user-agent value for a in the google-oss dialect. The
// parser compares one name, without wider tokens, and reads only the leading letters, "_" and "-" of
// a value. Therefore no value matches a name with other characters, and an empty name matches values
// that begin with none of these. A "*" followed by white space also addresses all agents.
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

// googleOSSPath returns path and query of a URL that is neither parsed nor normalized, and need not
// be valid. It adds a slash to a path that does not begin with one, and returns "/" for a URL without
// a path.
func googleOSSPath(url string) string {
	if rest, ok := strings.CutPrefix(url, "//"); ok {
		url = rest
	}
	const starts = "/?;" // the characters that can begin path and query
	page, _, _ := strings.Cut(url, "#")
	// Skip the scheme.
	i := strings.Index(url, "://")
	if early := strings.IndexAny(url, starts); i < 0 || early >= 0 && early < i {
		i = 0 // the text before :// is not a scheme
	} else {
		i += len("://")
	}
	if i > len(page) {
		return "/"
	}
	// Skip the host.
	start := strings.IndexAny(page[i:], starts)
	if start < 0 {
		return "/"
	}
	path, _, _ := strings.Cut(page[i+start:], "\x00") // the parser reads it as a C string
	if path[0] != '/' {
		path = "/" + path
	}
	return path
}
