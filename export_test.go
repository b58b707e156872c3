package decorum

// The two ways to a result, for tests that compare them.
var (
	ResolveFull = resolveFull
	ResolveFast = resolveFast[string]
)

// MaxURL and MaxHost are the limits, for tests at their edges.
const (
	MaxURL  = maxURL
	MaxHost = maxHost
)

// NameFast and NameByIDNA are the two ways to the canonical form of an
// international host name, for tests that compare them.
func NameFast(name string) (string, bool) {
	b, ok := appendNameFast(nil, name)
	return string(b), ok
}

var NameByIDNA = toASCII
