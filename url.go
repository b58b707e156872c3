package decorum

import "strings"

// A URL is an absolute http, https or ftp URL in canonical form, which ParseURL defines. Only
// ParseURL, URL.Resolve, URL.ResolveBytes and Origin.RobotsURL return one. URLs are comparable: two
// are equal if and only if the crawl treats them as the same page. The zero URL is invalid; IsZero
// reports it.
type URL struct {
	s         string // scheme://host[:port]/path[?query]
	pathStart uint32 // where the path begins in s
}

// String returns the URL in canonical form.
func (u URL) String() string { return u.s }

// MarshalText returns the URL in canonical form, so that JSON logs show it. The error is always nil.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.s), nil }

// IsZero reports whether u is the zero URL.
func (u URL) IsZero() bool { return u.s == "" }

// Origin returns the origin of u, whose robots.txt applies to u. It does not allocate.
func (u URL) Origin() Origin { return Origin{u.s[:u.pathStart]} }

// PathAndQuery returns path and query as they are requested and as robots.txt rules match them
// (MATCH-01). The result begins with a slash and is printable ASCII without fragment or dot
// segments. Its escapes are in the normal form of rules 10 and 11 of ParseURL, so a robots.txt rule
// in the same form (MATCH-22) can be compared with it byte by byte.
func (u URL) PathAndQuery() string { return u.s[u.pathStart:] }

// An Origin is scheme, host and port: the URLs that one robots.txt covers (LOC-03, LOC-17). Origins
// are comparable and can be map keys. The zero Origin is invalid; IsZero reports it.
type Origin struct{ s string }

// String returns the origin as scheme://host, with :port unless it is the scheme's default port.
func (o Origin) String() string { return o.s }

// MarshalText returns what String returns, so that JSON logs show it. The error is always nil.
func (o Origin) MarshalText() ([]byte, error) { return []byte(o.s), nil }

// IsZero reports whether o is the zero Origin.
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

// HostPort returns the host, with :port unless it is the scheme's default port: the value of a Host
// header.
func (o Origin) HostPort() string {
	if end := strings.IndexByte(o.s, ':'); end >= 0 { // end of the scheme
		return o.s[end+len("://"):]
	}
	return ""
}

// Host returns the host without its port. It is the key for politeness: the schemes and ports of one
// host share its delays and limits. An IPv6 address keeps its brackets. A name loses its final dot,
// because both spellings reach the same server.
func (o Origin) Host() string {
	host := o.HostPort()
	if i := strings.LastIndexByte(host, ':'); i >= 0 && i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	return strings.TrimSuffix(host, ".")
}

// RobotsURL returns the URL of the origin's robots.txt (LOC-01). The origin must not be zero.
func (o Origin) RobotsURL() URL {
	return URL{s: o.s + "/robots.txt", pathStart: uint32(len(o.s))}
}
