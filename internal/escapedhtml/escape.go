package escapedhtml

import (
	"fmt"
	"strings"
)

// escapers holds the functions that html/template adds to pipelines when it escapes a template.
var escapers = map[string]func(string) string{
	"_html_template_htmlescaper":   htmlEscaper.Replace,
	"_html_template_attrescaper":   htmlEscaper.Replace,
	"_html_template_rcdataescaper": htmlEscaper.Replace,
	"_html_template_urlescaper":    func(s string) string { return percentEncode(s, false) },
	"_html_template_urlnormalizer": func(s string) string { return percentEncode(s, true) },
	"_html_template_urlfilter":     filterURL,
}

// htmlEscaper escapes text of elements, and of attributes in quotes.
var htmlEscaper = strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;",
	"<", "&lt;", ">", "&gt;")

// percentEncode encodes the bytes of s that are not unreserved (RFC 3986, section 2.3). In a URL it leaves
// percent-encoded bytes and delimiters as they are, except quotes and parentheses.
func percentEncode(s string, isURL bool) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case isAlphanumeric(c), strings.IndexByte("-._~", c) >= 0,
			isURL && strings.IndexByte("!#$&*+,/:;=?@[]", c) >= 0,
			isURL && c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return b.String()
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'A' <= c && c <= 'F' || 'a' <= c && c <= 'f' }

// filterURL returns s, or a URL that leads nowhere if the scheme of s is not http, https or mailto: the
// link could be a script.
func filterURL(s string) string {
	scheme, _, ok := strings.Cut(s, ":")
	if ok && !strings.Contains(scheme, "/") && !strings.EqualFold(scheme, "http") &&
		!strings.EqualFold(scheme, "https") && !strings.EqualFold(scheme, "mailto") {
		return "#ZgotmplZ"
	}
	return s
}
