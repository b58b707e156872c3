package syntax

import "strings"

// A FieldKind is what a line is about. Those from CrawlDelay on are extensions.
type FieldKind uint8

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

// FieldNames holds the fields as they are written, in lower case. Typos are
// not accepted (SYN-08).
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

// A Line is one that means something: a known field and its value, without
// comment and outer space.
type Line struct {
	Value  string
	Number int32 // counted from 1
	Field  FieldKind
}

// BlankChars is the white space that counts: space and tab (SYN-03).
const BlankChars = " \t"

// CutLine returns the first line of text and what follows it. Lines end in LF,
// CR LF or CR, also mixed (FMT-02).
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

// ParseLine reads "field: value # comment" (SYN-01 to SYN-05).
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

// trimBlanks removes outer space. strings.Trim would do, at three times the cost.
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

func ParseFieldKind(name string) (FieldKind, bool) {
	for f, known := range FieldNames {
		// With equal lengths folding stays within ASCII: no letter beyond it
		// that folds to one of these is a single byte.
		if len(name) == len(known) && strings.EqualFold(name, known) {
			return FieldKind(f), true
		}
	}
	return 0, false
}

const Digits = "0123456789"

func IsAlphanumeric(c byte) bool { return IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }

func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// LeadingToken returns what of s is a token; text after it does not belong to
// the name (AGENT-02).
func LeadingToken(s string) string {
	for i := range len(s) {
		if !IsTokenByte(s[i]) {
			return s[:i]
		}
	}
	return s
}

func IsTokenByte(c byte) bool { return IsAlphanumeric(c) || c == '_' || c == '-' }
