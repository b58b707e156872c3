package gate

import (
	"errors"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
)

// A Clearance is the proof that robots.txt was asked before a visit to its
// URL. Only a Gate makes one that is valid; the zero Clearance is not.
type Clearance struct {
	gate          *Gate
	url           decorum.URL
	origin        decorum.Origin
	verdict       robots.Verdict
	originState   *originState // whose rules cleared the URL; nil if the visit is for a robots.txt
	fetchID       uint64       // the lookup that the visit is made for; 0 if none
	redirectCount int
}

// WasIssued reports whether a Gate made c.
func (c Clearance) WasIssued() bool { return c.gate != nil }

// URL returns the one URL that c clears.
func (c Clearance) URL() decorum.URL { return c.url }

// RobotsOrigin returns whose rules cleared the URL, or whose robots.txt the visit is
// for: of a hop, the origin that was asked first.
func (c Clearance) RobotsOrigin() decorum.Origin { return c.origin }

// IsForRobots reports whether the visit is for a robots.txt: what comes back
// goes to Gate.RecordFetch.
func (c Clearance) IsForRobots() bool { return c.fetchID != 0 }

// Verdict returns what cleared the URL.
func (c Clearance) Verdict() robots.Verdict { return c.verdict }

// FetchSummary returns what the verdict rests on; it is zero if IsForRobots.
func (c Clearance) FetchSummary() FetchSummary {
	if c.originState == nil {
		return FetchSummary{}
	}
	return c.originState.fetchSummary
}

// ClearOtherURL clears another URL of the same origin by the rules that have just cleared
// c, for a visit that is made in place of c's. The error is one of Gate.Check of Kind
// Disallowed, or Invalid: the URL is of another origin, or c is for a robots.txt.
func (c Clearance) ClearOtherURL(u decorum.URL) (Clearance, error) {
	if c.originState == nil || u.Origin() != c.origin {
		return Clearance{}, newGateError(u, decorum.Invalid, errors.New("no URL of the origin that was cleared"))
	}
	return c.gate.clearByRules(c.originState, u)
}
