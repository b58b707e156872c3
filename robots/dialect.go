package robots

import (
	"fmt"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// A Dialect is the interpretation of robots.txt by one search engine. The engines differ in how they
// choose a group and how they read unusual lines.
type Dialect uint8

// The dialects.
const (
	// Google follows Google's documentation and RFC 9309. Fields that Google ignores, such as
	// Crawl-delay, are honoured as extensions: see ParseOptions.
	Google Dialect = iota
	// Yandex follows Yandex's documentation: the 1994 format with wildcards, Crawl-delay, Host and
	// Clean-param. A robots.txt that cannot be fetched restricts nothing (C-01 to C-15).
	Yandex
	// GoogleOSS reproduces Google's published C++ parser (google/robotstxt) with all its quirks, so
	// that verdicts can be compared with it one to one. It reads the extensions too.
	GoogleOSS
)

var dialectNames = [...]string{Google: "google", Yandex: "yandex", GoogleOSS: "google-oss"}

// ParseDialect returns the dialect called name: google, yandex or google-oss. For other names it
// returns an error that lists these.
func ParseDialect(name string) (Dialect, error) {
	if i := slices.Index(dialectNames[:], name); i >= 0 {
		return Dialect(i), nil
	}
	return Google, fmt.Errorf("%q is not one of google, yandex, google-oss", name)
}

// String returns the name of the dialect, as ParseDialect reads it.
func (d Dialect) String() string {
	if int(d) < len(dialectNames) {
		return dialectNames[d]
	}
	return fmt.Sprintf("Dialect(%d)", uint8(d))
}

// agentLineTokens returns the tokens that a user-agent value names in the dialect, including "*" if
// it addresses all agents.
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
