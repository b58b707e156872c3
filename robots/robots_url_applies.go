package robots

import (
	"net/url"
	"strings"

	"github.com/decorum-crawler/decorum"
)

// RobotsURLAppliesTo reports whether the file at robotsURL covers page: its path is exactly
// /robots.txt, without a query (LOC-01, LOC-02, LOC-06), and page has the same scheme, host and port
// (LOC-03 to LOC-11, LOC-16). Both are absolute URLs in any spelling, of any scheme with a host
// (LOC-15). If one of them is not such a URL, the result is false.
func RobotsURLAppliesTo(robotsURL, page string) bool {
	file, path := originAndPath(robotsURL)
	site, _ := originAndPath(page)
	return file != "" && file == site && path == "/robots.txt"
}

// originAndPath returns the origin of s, which is scheme, host and port in normal form (LOC-17), and
// the path with its query. The origin is empty if s is not a URL.
func originAndPath(s string) (origin, path string) {
	if u, err := decorum.ParseURL(s); err == nil {
		return u.Origin().String(), u.PathAndQuery()
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return "", ""
	}
	switch u.Scheme {
	case "", "http", "https", "ftp": // ParseURL has rejected it
		return "", ""
	}
	// The default ports of other schemes are unknown, so the port stays. The host is normalized as
	// that of an http URL, because all schemes write hosts alike.
	port := u.Port()
	host, err := decorum.ParseURL("http://" + strings.TrimSuffix(u.Host, ":"+port) + "/")
	if err != nil {
		return "", ""
	}
	origin = u.Scheme + "://" + host.Origin().Host()
	if port != "" {
		origin += ":" + port
	}
	return origin, u.RequestURI()
}
