package httpheader

import (
	"cmp"
	"fmt"
	"net/mail"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Limits of what a crawl says of itself, in bytes: it is part of every request, and of every line
// in a server's log.
const (
	MaxProductBytes = 64 // of a product token, and of a version
	MaxContactBytes = 256
)

// IsContact reports whether s is a web page (http or https) or a mail address (mailto:) by which a
// site's owner can reach the crawl's operator, and which is valid in the comment of a User-Agent
// header (RFC 9110, section 10.1.5): it is ASCII and has at most MaxContactBytes bytes.
func IsContact(s string) bool {
	if len(s) > MaxContactBytes || strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()\`, r)
	}) {
		return false
	}
	if address, ok := strings.CutPrefix(s, "mailto:"); ok {
		a, err := mail.ParseAddress(address)
		return err == nil && a.Address == address
	}
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

// ContactMail returns the mail address of a mailto: contact, for the From header, or "" for other
// contacts.
func ContactMail(contact string) string {
	address, ok := strings.CutPrefix(contact, "mailto:")
	if !ok {
		return ""
	}
	return address
}

// BuildUserAgent returns the product token of agent, which is product or product/version, and the
// User-Agent header with contact. The default version is 1.0. It returns an error if agent or
// contact is invalid or too long.
func BuildUserAgent(agent, contact string) (product, userAgent string, err error) {
	product, version, _ := strings.Cut(agent, "/")
	version = cmp.Or(version, "1.0")
	switch {
	case len(product) > MaxProductBytes || len(version) > MaxProductBytes:
		return "", "", fmt.Errorf("agent: its product has %d bytes and its version %d: expected %d at most",
			len(product), len(version), MaxProductBytes)
	case !httpguts.ValidHeaderFieldName(version): // product and version are tokens (RFC 9110, section 10.1.5)
		return "", "", fmt.Errorf("agent %q: expected product or product/version, as in examplebot/1.0", agent)
	case !IsContact(contact):
		return "", "", fmt.Errorf("contact %q: expected a way to reach you, as in https://example.com/bot or "+
			"mailto:you@example.com", contact)
	}
	return product, product + "/" + version + " (+" + contact + ")", nil
}

// ParseUserAgent returns the product token and the contact of a User-Agent header that has the form
// which BuildUserAgent gives it. It returns an error for any other.
func ParseUserAgent(userAgent string) (product, contact string, err error) {
	agent, comment, _ := strings.Cut(userAgent, " (+")
	contact, isClosed := strings.CutSuffix(comment, ")")
	product, built, err := BuildUserAgent(agent, contact)
	switch {
	case !isClosed, err == nil && (built != userAgent || !httpguts.ValidHeaderFieldName(product)):
		return "", "", fmt.Errorf("User-Agent %q: expected product/version (+contact), as in examplebot/1.0 "+
			"(+https://example.com/bot)", userAgent)
	case err != nil:
		return "", "", fmt.Errorf("User-Agent %q: %w", userAgent, err)
	}
	return product, contact, nil
}
