package robots

import (
	"net/url"
	"strings"

	"github.com/decorum-crawler/decorum"
)

// RobotsURLAppliesTo reports whether the file at robotsURL speaks for page: it lies at
// /robots.txt, spelt so and without a query (LOC-01, LOC-02, LOC-06), and page
// has the same scheme, host and port (LOC-03 to LOC-11, LOC-16). Both are
// absolute URLs as people write them, of any scheme with a host (LOC-15); what
// is no such URL covers nothing and is not covered.
func RobotsURLAppliesTo(robotsURL, page string) bool {
	file, path := originAndPath(robotsURL)
	site, _ := originAndPath(page)
	return file != "" && file == site && path == "/robots.txt"
}

// originAndPath returns what a robots.txt speaks for, scheme, host and port in normal
// form (LOC-17), and the path with its query. The origin is empty if s is no
// URL.
func originAndPath(s string) (origin, path string) {
	if u, err := decorum.ParseURL(s); err == nil {
		return u.Origin().String(), u.PathAndQuery()
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return "", ""
	}
	switch u.Scheme {
	case "", "http", "https", "ftp": // ParseURL knows better
		return "", ""
	}
	// Of other schemes no default port is known. The host is written alike in
	// all of them, so that of an http URL stands for it.
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
