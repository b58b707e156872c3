package decorum_test

import (
	"encoding/hex"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	whatwg "github.com/nlnwa/whatwg-url/url"

	"github.com/decorum-crawler/decorum"
)

// Why decorum's result differs from that of whatwg-url, apart from what normalizeHref adds.
const (
	reasonCaret = "the standard's path percent-encode set has ^ since 2025 (whatwg/url#846); the module's " +
		"lacks it"
	reasonStrayPercent   = "decoding must not make an escape of a stray percent sign (rule 11)"
	reasonNotUTF8        = "the standard reads text; the crawl keeps invalid UTF-8 (FMT-14)"
	reasonSTD3           = "the standard does not use STD3 rules; the module does on names outside ASCII"
	reasonNumberSyntax   = "strconv, which the module uses, accepts a sign, and reports overflow before a letter"
	reasonBracket        = "an IPv6 address contains no brackets; the module ignores some"
	reasonMixedDirection = "UTS 46 checks directions after it maps; the module before"
	reasonEmptyPunycode  = "UTS 46 rejects xn-- alone; the module reads it as an empty label"
)

// knownDifferences are the references of the tables on which the two differ, with the reason.
var knownDifferences = map[string]string{
	"https://example.com/\"<>^`{}":   reasonCaret,
	"https://example.com/%%341":      reasonStrayPercent,
	"https://example.com/%4%31":      reasonStrayPercent,
	"https://example.com/%%32%65/":   reasonStrayPercent,
	"https://example.com/a?%%341&%":  reasonStrayPercent,
	"https://example.com/caf\xe9":    reasonNotUTF8,
	"https://example.com/\xff?\xfe":  reasonNotUTF8,
	"caf\xe9.html":                   reasonNotUTF8,
	"/\xc3":                          reasonNotUTF8,
	"https://é!_.example/":           reasonSTD3,
	"https://-0/":                    reasonNumberSyntax,
	"https://99999999999999999999x/": reasonNumberSyntax,
	"https://a\u2135b.example/":      reasonMixedDirection,
	"https://[::[]/":                 reasonBracket,
	"https://a.XN--.example/":        reasonEmptyPunycode,
}

// resolveByWHATWG resolves ref by whatwg-url. It returns "" for a ref that whatwg-url rejects or
// whose scheme the crawl does not know.
func resolveByWHATWG(base, ref string) string {
	parse := func() (*whatwg.Url, error) { return whatwg.ParseRef(base, ref) }
	if base == "" {
		parse = func() (*whatwg.Url, error) { return whatwg.Parse(ref) }
	}
	u, err := parse()
	if err != nil {
		return ""
	}
	switch u.Scheme() {
	case "http", "https", "ftp":
		return normalizeHref(u.Href(true))
	}
	return ""
}

var (
	userInfoPattern   = regexp.MustCompile("^([a-z]+://)[^/@]*@")
	escapePattern     = regexp.MustCompile("%[0-9A-Fa-f]{2}")
	unreservedPattern = regexp.MustCompile("^[-._~0-9A-Za-z]$")
)

// normalizeHref applies to href, which has no fragment, the rules that ParseURL adds to the
// standard: it drops user information (LOC-17) and brings escapes into the normal form of RFC 3986
// §6.2.2 (MATCH-22). It shares no code with ParseURL.
func normalizeHref(href string) string {
	href = userInfoPattern.ReplaceAllString(href, "$1")
	return escapePattern.ReplaceAllStringFunc(href, func(e string) string {
		if c := decodeEscape(e); unreservedPattern.MatchString(c) {
			return c
		}
		return strings.ToUpper(e)
	})
}

// decodeEscape returns the byte that the escape e encodes.
func decodeEscape(e string) string {
	c, _ := hex.DecodeString(e[1:])
	return string(c)
}

func TestAgreesWithWHATWG(t *testing.T) {
	var rows []resolveCase
	for _, topic := range resolveCases {
		rows = append(rows, topic.cases...)
	}
	for _, l := range append(rows, refusedCases...) {
		u, _ := l.resolve(t)
		theirs := resolveByWHATWG(l.base, l.ref)
		reason := knownDifferences[l.ref]
		if differ := u.String() != theirs; differ != (reason != "") {
			t.Errorf("%q on %q: we say %q, whatwg-url %q; the difference known: %q", l.ref, l.base, u, theirs, reason)
		}
	}
}

var (
	mayBeEscapePattern = regexp.MustCompile("%[0-9A-Fa-f]?%") // an escape, after the bytes behind it are decoded
	mayBeNumberPattern = regexp.MustCompile(`[-+][0-9\x{80}-\x{10FFFF}]|0[xX][-+]|[0-9A-Fa-f]{15}`)
)

// mayDiffer reports whether the two parsers may differ on ref, for one of the known reasons.
func mayDiffer(ref string) bool {
	ref = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(ref)
	if !utf8.ValidString(ref) || mayBeEscapePattern.MatchString(ref) {
		return true
	}
	ref = strings.ToLower(escapePattern.ReplaceAllStringFunc(ref, decodeEscape))
	return mayBeNumberPattern.MatchString(ref) || strings.Count(ref, "[") > 1 || strings.Count(ref, "]") > 1 ||
		strings.ContainsAny(ref, "^ℵℶℷℸ") || strings.Contains(ref, "xn--")
}

func FuzzAgreesWithWHATWG(f *testing.F) {
	addResolveSeeds(f)
	f.Fuzz(func(t *testing.T, base, ref string) {
		if mayDiffer(base) || mayDiffer(ref) || len(base)+len(ref) > decorum.MaxHostBytes {
			t.Skip()
		}
		baseURL, _ := decorum.ParseURL(base)
		u, _ := baseURL.Resolve(ref)
		if strings.ContainsAny(baseURL.Origin().Host()+u.Origin().Host(), "!\"$&'()*+,;=_`{}~") {
			t.Skip() // may be refused by STD3 rules
		}
		if theirs := resolveByWHATWG(baseURL.String(), ref); u.String() != theirs {
			t.Errorf("%q on %q: we say %q, whatwg-url %q", ref, baseURL, u, theirs)
		}
	})
}
