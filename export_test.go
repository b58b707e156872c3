package decorum

// The fast and the full parser, for tests that compare their results.
var (
	ResolveFull = resolveFull
	ResolveFast = resolveFast[string]
)

// MaxURLBytes and MaxHostBytes are the limits, for tests at their edges.
const (
	MaxURLBytes  = maxURLBytes
	MaxHostBytes = maxHostBytes
)

// HostnameFast and HostnameByIDNA both return the canonical form of an international host name, for
// tests that compare their results.
func HostnameFast(name string) (string, bool) {
	b, ok := appendIDNHostFast(nil, name)
	return string(b), ok
}

var HostnameByIDNA = toASCII
