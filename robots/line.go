package robots

import (
	"strings"
)

// A fieldKind is what a line is about. Those from crawlDelay on are extensions.
type fieldKind uint8

const (
	userAgent fieldKind = iota
	allow
	disallow
	sitemap
	crawlDelay
	mainHost
	cleanParam
	contentUsage
	contentSignal
	requestRateLine
	visitTime
)

// fieldNames holds the fields as they are written, in lower case. Typos are
// not accepted (SYN-08).
var fieldNames = [...]string{
	userAgent:     "user-agent",
	allow:         "allow",
	disallow:      "disallow",
	sitemap:       "sitemap",
	crawlDelay:    "crawl-delay",
	mainHost:      "host",
	cleanParam:    "clean-param",
	contentUsage:  "content-usage",
	contentSignal: "content-signal",

	requestRateLine: "request-rate",
	visitTime:       "visit-time",
}

// String returns the name of the field, in lower case.
func (f fieldKind) String() string { return fieldNames[f] }

// isUnknownToGoogle reports whether Google does not know the field (SYN-07, SYN-15).
func (f fieldKind) isUnknownToGoogle() bool { return f >= crawlDelay }

// A parsedLine is one that means something: a known field and its value, without
// comment and outer space.
type parsedLine struct {
	value     string
	number    int32 // counted from 1
	fieldKind fieldKind
}

// blankChars is the white space that counts: space and tab (SYN-03).
const blankChars = " \t"

// cutLine returns the first line of text and what follows it. Lines end in LF,
// CR LF or CR, also mixed (FMT-02).
func cutLine(text string) (first, rest string) {
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

// parseLine reads "field: value # comment" (SYN-01 to SYN-05).
func parseLine(s string) (parsedLine, bool) {
	if comment := strings.IndexByte(s, '#'); comment >= 0 {
		s = s[:comment]
	}
	colon := strings.IndexByte(s, ':')
	if colon < 0 {
		return parsedLine{}, false
	}
	f, ok := parseFieldName(trimBlanks(s[:colon]))
	return parsedLine{fieldKind: f, value: trimBlanks(s[colon+1:])}, ok
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

func parseFieldName(name string) (fieldKind, bool) {
	for f, known := range fieldNames {
		// With equal lengths folding stays within ASCII: no letter beyond it
		// that folds to one of these is a single byte.
		if len(name) == len(known) && strings.EqualFold(name, known) {
			return fieldKind(f), true
		}
	}
	return 0, false
}
