package decorum

// The two ways to a result, for tests that compare them.
var (
	ResolveFull = resolveFull
	ResolveFast = resolveFast[string]
)

// MaxURLBytes and MaxHostBytes are the limits, for tests at their edges.
const (
	MaxURLBytes  = maxURLBytes
	MaxHostBytes = maxHostBytes
)

// HostnameFast and HostnameByIDNA are the two ways to the canonical form of an
// international host name, for tests that compare them.
func HostnameFast(name string) (string, bool) {
	b, ok := appendIDNHostFast(nil, name)
	return string(b), ok
}

var HostnameByIDNA = toASCII
