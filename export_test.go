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
