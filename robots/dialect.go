package robots

import (
	"fmt"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// A Dialect is one reading of robots.txt. Engines differ in how they choose a
// group and in what they make of odd lines.
type Dialect uint8

// The dialects.
const (
	// Google follows Google's documentation and RFC 9309. What Google
	// ignores, Crawl-delay for one, is honoured as extensions: see ParseOptions.
	Google Dialect = iota
	// Yandex follows Yandex's documentation: the 1994 format with wildcards,
	// Crawl-delay, Host and Clean-param. What cannot be had restricts nobody
	// (C-01 to C-15).
	Yandex
	// GoogleOSS is Google's published C++ parser (google/robotstxt) to the
	// letter, quirks included, for comparing verdicts with it one to one. The
	// extensions are read in it, too.
	GoogleOSS
)

var dialectNames = [...]string{Google: "google", Yandex: "yandex", GoogleOSS: "google-oss"}

// ParseDialect returns the dialect of that name.
func ParseDialect(name string) (Dialect, error) {
	if i := slices.Index(dialectNames[:], name); i >= 0 {
		return Dialect(i), nil
	}
	return Google, fmt.Errorf("%q is not one of google, yandex, google-oss", name)
}

// String returns the name of the dialect.
func (d Dialect) String() string {
	if int(d) < len(dialectNames) {
		return dialectNames[d]
	}
	return fmt.Sprintf("Dialect(%d)", uint8(d))
}

// agentLineTokens returns the tokens that a user-agent value names in the dialect, and
// "*" if it speaks to everybody.
func (d Dialect) agentLineTokens(value string) []string {
	switch {
	case d == Yandex:
		names := strings.FieldsFunc(value, func(r rune) bool { return r > 'z' || !syntax.IsTokenByte(byte(r)) })
		if strings.Contains(value, "*") {
			names = append(names, "*")
		}
		return names
	case value == "*", d == GoogleOSS && Agent{}.googleOSSMatchRank(value) == 1:
		return []string{"*"}
	case d == GoogleOSS:
		return []string{googleOSSToken(value)}
	}
	return []string{syntax.LeadingToken(value)}
}
