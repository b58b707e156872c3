package syntax

import "strings"

// A FieldKind is the field of a line. CrawlDelay and the kinds after it are extensions.
type FieldKind uint8

// The fields that decorum knows. The order matters: see IsUnknownToGoogle.
const (
	UserAgent FieldKind = iota
	Allow
	Disallow
	Sitemap
	CrawlDelay
	Host
	CleanParam
	ContentUsage
	ContentSignal
	RequestRate
	VisitTime
)

// FieldNames are the names of the fields, in lower case. Misspelt names are not accepted (SYN-08).
var FieldNames = [...]string{
	UserAgent:     "user-agent",
	Allow:         "allow",
	Disallow:      "disallow",
	Sitemap:       "sitemap",
	CrawlDelay:    "crawl-delay",
	Host:          "host",
	CleanParam:    "clean-param",
	ContentUsage:  "content-usage",
	ContentSignal: "content-signal",

	RequestRate: "request-rate",
	VisitTime:   "visit-time",
}

// String returns the name of the field, in lower case.
func (f FieldKind) String() string { return FieldNames[f] }

// IsUnknownToGoogle reports whether Google does not know the field (SYN-07, SYN-15).
func (f FieldKind) IsUnknownToGoogle() bool { return f >= CrawlDelay }

// A Line is a line with a known field.
type Line struct {
	Value  string // without comment and surrounding blanks
	Number int32  // its line number in the file, from 1
	Field  FieldKind
}

// BlankChars are the characters that count as white space: space and tab (SYN-03).
const BlankChars = " \t"

// CutLine returns the first line of text, without its line end, and the text after it. Lines end in
// LF, CR LF or CR, also mixed (FMT-02).
func CutLine(text string) (first, rest string) {
	for i := range len(text) {
		switch text[i] {
		case '\n':
			return text[:i], text[i+1:]
		case '\r':
			return text[:i], strings.TrimPrefix(text[i+1:], "\n")
		}
	}
	return text, ""
}

// ParseLine parses "field: value # comment" (SYN-01 to SYN-05). It reports false if the line has no
// colon or an unknown field. The caller sets Number.
func ParseLine(s string) (Line, bool) {
	if comment := strings.IndexByte(s, '#'); comment >= 0 {
		s = s[:comment]
	}
	colon := strings.IndexByte(s, ':')
	if colon < 0 {
		return Line{}, false
	}
	f, ok := ParseFieldKind(trimBlanks(s[:colon]))
	return Line{Field: f, Value: trimBlanks(s[colon+1:])}, ok
}

// trimBlanks removes blanks around s. strings.Trim gives the same result and takes three times as
// long.
func trimBlanks(s string) string {
	for s != "" && isSpaceOrTab(s[0]) {
		s = s[1:]
	}
	for s != "" && isSpaceOrTab(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func isSpaceOrTab(c byte) bool { return c == ' ' || c == '\t' }

// ParseFieldKind returns the field called name, in any case, and false if the field is unknown.
func ParseFieldKind(name string) (FieldKind, bool) {
	for f, known := range FieldNames {
		// Because the lengths are equal, case folding stays within ASCII: every other letter that
		// folds to an ASCII letter takes more than one byte.
		if len(name) == len(known) && strings.EqualFold(name, known) {
			return FieldKind(f), true
		}
	}
	return 0, false
}

// Digits are the ASCII digits.
const Digits = "0123456789"

// IsAlphanumeric reports whether c is an ASCII letter or digit.
func IsAlphanumeric(c byte) bool { return IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }

// IsDigit reports whether c is an ASCII digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// LeadingToken returns the product token at the beginning of s, which may be empty. The text after it
// does not belong to the name of the agent (AGENT-02).
func LeadingToken(s string) string {
	for i := range len(s) {
		if !IsTokenByte(s[i]) {
			return s[:i]
		}
	}
	return s
}

// IsTokenByte reports whether c may occur in a product token: a letter, a digit, "_" or "-".
func IsTokenByte(c byte) bool { return IsAlphanumeric(c) || c == '_' || c == '-' }
