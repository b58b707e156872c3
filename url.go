package decorum

import "strings"

// A URL is an absolute http, https or ftp URL in canonical form; ParseURL says
// what that is. Only ParseURL, URL.Resolve, URL.ResolveBytes and
// Origin.RobotsURL make one. It is comparable: two URLs are equal if and only
// if they are the same page to the crawl. The zero URL is none.
type URL struct {
	s         string // scheme://host[:port]/path[?query]
	pathStart uint32 // where the path begins in s
}

// String returns the URL in canonical form.
func (u URL) String() string { return u.s }

// MarshalText writes what String returns, so that logs in JSON show it.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.s), nil }

// IsZero reports whether u is none.
func (u URL) IsZero() bool { return u.s == "" }

// Origin returns whose robots.txt speaks for u. It allocates nothing.
func (u URL) Origin() Origin { return Origin{u.s[:u.pathStart]} }

// PathAndQuery returns path and query as they are requested and as robots.txt rules
// match them (MATCH-01). It begins with a slash and is printable ASCII without
// fragment or dot segments; escapes are in the normal form of rules 10 and 11
// of ParseURL. So a robots.txt rule brought into that form (MATCH-22) can be
// compared with it byte by byte.
func (u URL) PathAndQuery() string { return u.s[u.pathStart:] }

// An Origin is scheme, host and port: what one robots.txt speaks for
// (LOC-03, LOC-17). It is comparable and fit for a map key. The zero Origin
// is none.
type Origin struct{ s string }

// String returns the origin as scheme://host, with :port if the port is not
// the scheme's own.
func (o Origin) String() string { return o.s }

// MarshalText writes what String returns, so that logs in JSON show it.
func (o Origin) MarshalText() ([]byte, error) { return []byte(o.s), nil }

// IsZero reports whether o is none.
func (o Origin) IsZero() bool { return o.s == "" }

// Scheme returns "http", "https" or "ftp".
func (o Origin) Scheme() string {
	scheme, _, _ := strings.Cut(o.s, "://")
	return scheme
}

// IsHTTP reports whether the scheme is http or https.
func (o Origin) IsHTTP() bool {
	return strings.HasPrefix(o.s, "http://") || strings.HasPrefix(o.s, "https://")
}

// HostPort returns the host, with :port if the port is not the scheme's own:
// what a Host header says.
func (o Origin) HostPort() string {
	if end := strings.IndexByte(o.s, ':'); end >= 0 { // of the scheme
		return o.s[end+len("://"):]
	}
	return ""
}

// Host returns the host without its port: to whom politeness is owed. http
// and https of one host, and its ports, share it. An IPv6 address keeps its
// brackets, a name loses the dot at its end: with and without it is one server.
func (o Origin) Host() string {
	host := o.HostPort()
	if i := strings.LastIndexByte(host, ':'); i >= 0 && i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	return strings.TrimSuffix(host, ".")
}

// RobotsURL returns the URL of the origin's robots.txt (LOC-01). The origin
// must not be zero.
func (o Origin) RobotsURL() URL {
	return URL{s: o.s + "/robots.txt", pathStart: uint32(len(o.s))}
}
