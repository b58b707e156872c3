package decorum

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
