package gate

import (
	"errors"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
)

// A Clearance proves that robots.txt allows a visit to one URL, or that the visit is for a
// robots.txt. Only a Gate makes a valid Clearance; the zero Clearance is invalid.
type Clearance struct {
	gate          *Gate
	url           decorum.URL
	origin        decorum.Origin // see RobotsOrigin
	verdict       robots.Verdict
	originState   *originState // the state whose rules cleared the URL; nil if the visit is for a robots.txt
	fetchID       uint64       // the fetch lease that the visit uses; 0 unless it is for a robots.txt
	redirectCount int          // the redirects from the robots.txt to url
}

// WasIssued reports whether a Gate made c, so that c is not the zero Clearance.
func (c Clearance) WasIssued() bool { return c.gate != nil }

// URL returns the URL that c clears.
func (c Clearance) URL() decorum.URL { return c.url }

// RobotsOrigin returns the origin whose rules cleared the URL. If the visit is for a robots.txt, it
// returns the origin of that robots.txt, even if the URL is the target of a redirect to another one.
func (c Clearance) RobotsOrigin() decorum.Origin { return c.origin }

// IsForRobots reports whether the visit is for a robots.txt, so that the caller must pass the answer
// to Gate.RecordFetch.
func (c Clearance) IsForRobots() bool { return c.fetchID != 0 }

// Verdict returns the verdict that cleared the URL.
func (c Clearance) Verdict() robots.Verdict { return c.verdict }

// FetchSummary returns which robots.txt the verdict is based on; it is zero if IsForRobots.
func (c Clearance) FetchSummary() FetchSummary {
	if c.originState == nil {
		return FetchSummary{}
	}
	return c.originState.fetchSummary
}

// ClearOtherURL returns a Clearance for another URL of the same origin, by the rules that cleared c,
// for a visit in place of that of c. The error is of kind Disallowed, as in Gate.Check, or of kind
// Invalid if u has another origin or c is for a robots.txt.
func (c Clearance) ClearOtherURL(u decorum.URL) (Clearance, error) {
	if c.originState == nil || u.Origin() != c.origin {
		return Clearance{}, newGateError(u, decorum.Invalid, errors.New("the URL is not of the cleared origin"))
	}
	return c.gate.clearByRules(c.originState, u)
}
