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

// Why we say something else than whatwg-url, beyond what inOurForm makes up for.
const (
	caret    = "the standard's path percent-encode set has ^ since 2025 (whatwg/url#846); the module's has not"
	stray    = "decoding must not make an escape of a stray percent sign (rule 11)"
	bytewise = "the standard reads text; the crawl keeps bytes that are no UTF-8 (FMT-14)"
	strict   = "the standard does not use STD3 rules; the module does on names outside ASCII"
	number   = "strconv, which the module uses, takes a sign, and reports overflow before a letter"
	bracket  = "no bracket stands in an IPv6 address; the module passes over some"
	mixed    = "UTS 46 checks directions after it maps; the module before"
	empty    = "UTS 46 refuses xn-- alone; the module takes it for an empty label"
)

// differences are the references of the tables where we do.
var differences = map[string]string{
	"https://example.com/\"<>^`{}":   caret,
	"https://example.com/%%341":      stray,
	"https://example.com/%4%31":      stray,
	"https://example.com/%%32%65/":   stray,
	"https://example.com/a?%%341&%":  stray,
	"https://example.com/caf\xe9":    bytewise,
	"https://example.com/\xff?\xfe":  bytewise,
	"caf\xe9.html":                   bytewise,
	"/\xc3":                          bytewise,
	"https://é!_.example/":           strict,
	"https://-0/":                    number,
	"https://99999999999999999999x/": number,
	"https://a\u2135b.example/":      mixed,
	"https://[::[]/":                 bracket,
	"https://a.XN--.example/":        empty,
}

// byWHATWG resolves ref by whatwg-url, and returns "" for what is refused.
func byWHATWG(base, ref string) string {
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
		return inOurForm(u.Href(true))
	}
	return "" // a URL, but not for the crawl
}

var (
	userInformation = regexp.MustCompile("^([a-z]+://)[^/@]*@")
	escape          = regexp.MustCompile("%[0-9A-Fa-f]{2}")
	plain           = regexp.MustCompile("^[-._~0-9A-Za-z]$")
)

// inOurForm returns href, which has no fragment, with what ParseURL adds to
// the standard: user information is dropped (LOC-17), and escapes are in the
// normal form of RFC 3986 §6.2.2 (MATCH-22). It shares no code with ParseURL.
func inOurForm(href string) string {
	href = userInformation.ReplaceAllString(href, "$1")
	return escape.ReplaceAllStringFunc(href, func(e string) string {
		if c := decode(e); plain.MatchString(c) {
			return c
		}
		return strings.ToUpper(e)
	})
}

// decode returns what the escape e stands for.
func decode(e string) string {
	c, _ := hex.DecodeString(e[1:])
	return string(c)
}

func TestAgreesWithWHATWG(t *testing.T) {
	var rows []link
	for _, topic := range links {
		rows = append(rows, topic.rows...)
	}
	for _, l := range append(rows, refused...) {
		u, _ := l.resolve(t)
		theirs := byWHATWG(l.base, l.ref)
		why := differences[l.ref]
		if differ := u.String() != theirs; differ != (why != "") {
			t.Errorf("%q on %q: we say %q, whatwg-url %q; the difference known: %q", l.ref, l.base, u, theirs, why)
		}
	}
}

var (
	mayBeEscape = regexp.MustCompile("%[0-9A-Fa-f]?%") // once what follows is decoded
	mayBeNumber = regexp.MustCompile(`[-+][0-9\x{80}-\x{10FFFF}]|0[xX][-+]|[0-9A-Fa-f]{15}`)
)

// maySayElse reports whether ref may be one of the differences.
func maySayElse(ref string) bool {
	ref = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(ref)
	if !utf8.ValidString(ref) || mayBeEscape.MatchString(ref) {
		return true
	}
	ref = strings.ToLower(escape.ReplaceAllStringFunc(ref, decode))
	return mayBeNumber.MatchString(ref) || strings.Count(ref, "[") > 1 || strings.Count(ref, "]") > 1 ||
		strings.ContainsAny(ref, "^ℵℶℷℸ") || strings.Contains(ref, "xn--")
}

func FuzzAgreesWithWHATWG(f *testing.F) {
	addLinks(f)
	f.Fuzz(func(t *testing.T, base, ref string) {
		if maySayElse(base) || maySayElse(ref) || len(base)+len(ref) > decorum.MaxHost {
			t.Skip()
		}
		on, _ := decorum.ParseURL(base)
		u, _ := on.Resolve(ref)
		if strings.ContainsAny(on.Origin().Host()+u.Origin().Host(), "!\"$&'()*+,;=_`{}~") {
			t.Skip() // may be refused by STD3 rules
		}
		if theirs := byWHATWG(on.String(), ref); u.String() != theirs {
			t.Errorf("%q on %q: we say %q, whatwg-url %q", ref, on, u, theirs)
		}
	})
}
