package collyfetch

import (
	"cmp"
	"fmt"
	"net/mail"
	"net/url"
	"strings"
)

// IsContact reports whether s is a web page (http or https) or a mail address
// (mailto:) that a site's owner can reach the crawl's operator by, and may
// stand in the comment of a User-Agent header (RFC 9110, section 10.1.5).
func IsContact(s string) bool {
	if strings.ContainsAny(s, "()\\ \t\r\n") {
		return false
	}
	if address, ok := strings.CutPrefix(s, "mailto:"); ok {
		a, err := mail.ParseAddress(address)
		return err == nil && a.Address == address
	}
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

// MailOf returns the address of a contact that is one of mail, for the From
// header; empty if it is none.
func MailOf(contact string) string {
	address, ok := strings.CutPrefix(contact, "mailto:")
	if !ok {
		return ""
	}
	return address
}

// identity returns the product token of agent, which is product or
// product/version, and the User-Agent header.
func identity(agent, contact string) (product, userAgent string, err error) {
	product, version, _ := strings.Cut(agent, "/")
	version = cmp.Or(version, "1.0")
	switch {
	case strings.ContainsAny(version, "/() \t\r\n"):
		return "", "", fmt.Errorf("agent %q: expected product or product/version, as in examplebot/1.0", agent)
	case !IsContact(contact):
		return "", "", fmt.Errorf("contact %q: expected a way to reach you, as in https://example.com/bot or mailto:you@example.com", contact)
	}
	return product, product + "/" + version + " (+" + contact + ")", nil
}
