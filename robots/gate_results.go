package robots

import (
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A Clearance is the proof that robots.txt was asked before a visit to its
// URL. Only a Gate makes one that is valid; the zero Clearance is not.
type Clearance struct {
	gate    *Gate
	url     decorum.URL
	origin  decorum.Origin
	verdict Verdict
	by      *originState // whose rules cleared the URL; nil if the visit is for a robots.txt
	fetchID uint64       // the lookup that the visit is made for; 0 if none
	hop     int
}

// Valid reports whether a Gate made c.
func (c Clearance) Valid() bool { return c.gate != nil }

// URL returns the one URL that c clears.
func (c Clearance) URL() decorum.URL { return c.url }

// Origin returns whose rules cleared the URL, or whose robots.txt the visit is
// for: of a hop, the origin that was asked first.
func (c Clearance) Origin() decorum.Origin { return c.origin }

// ForRobots reports whether the visit is for a robots.txt: what comes back
// goes to Gate.Learn.
func (c Clearance) ForRobots() bool { return c.fetchID != 0 }

// Hop returns how many redirects led from the origin's robots.txt to the URL.
func (c Clearance) Hop() int { return c.hop }

// Verdict returns what cleared the URL.
func (c Clearance) Verdict() Verdict { return c.verdict }

// File returns what the verdict rests on; it is zero if ForRobots.
func (c Clearance) File() Snapshot {
	if c.by == nil {
		return Snapshot{}
	}
	return c.by.file
}

// Beside clears another URL of the same origin by the rules that have just cleared
// c, for a visit that is made in place of c's. The error is one of Gate.Check of Kind
// Disallowed, or Invalid: the URL is of another origin, or c is for a robots.txt.
func (c Clearance) Beside(u decorum.URL) (Clearance, error) {
	if c.by == nil || u.Origin() != c.origin {
		return Clearance{}, refusal(u, decorum.Invalid, errors.New("no URL of the origin that was cleared"))
	}
	return c.gate.clearByRules(c.by, u)
}

// A Snapshot says what of a robots.txt is known, and since when.
type Snapshot struct {
	SHA256  string    // of the bytes that were kept, in hex; empty if the outcome is not of a file
	Fetched time.Time // when the answer came
	Outcome Outcome
}

// An Outcome is what became of the lookup of a robots.txt (DEF-05).
type Outcome uint8

// The outcomes.
const (
	Unknown       Outcome = iota // nothing is known yet
	RulesKnown                   // the file's rules decide
	AllowedAll                   // there is no file: everything is allowed
	DisallowedAll                // the server failed: nothing is allowed for now
	CachedRules                  // it failed for so long that the last good copy decides
	Following                    // a redirect is being followed
)

// String returns the outcome's name.
func (o Outcome) String() string {
	names := [...]string{"unknown", "rules", "allow_all", "disallow_all", "cached_rules", "following"}
	if int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// A Refusal is why a URL is disallowed: the cause of an error of Kind
// decorum.Disallowed.
type Refusal struct {
	Verdict Verdict
	File    Snapshot
	TDMRep  string // SHA-256, in hex, of the tdmrep.json that the verdict is of; empty: it is of File
}

// Error names the rule.
func (r *Refusal) Error() string {
	v := r.Verdict
	if v.Rule == "" {
		return "no rule allows it"
	}
	return fmt.Sprintf("%s (line %d, group %s)", v.Rule, v.Line, v.Group)
}

// PostponedError says that an origin's pages cannot be visited for now, because its
// rules are not known: the cause of errors of Kind decorum.Pending, while its
// robots.txt is being looked up, and decorum.Unreachable, after that failed.
type PostponedError struct {
	Until    time.Time // when to ask the Gate again
	Dormant  bool      // it failed so often that nobody should wait for it
	Attempts int       // how often it failed in a row
	Why      string    // for people
	// Hop is the redirect of its robots.txt that must be visited first, and
	// Since when it has been waited for; zero if there is none.
	Hop   decorum.URL
	Since time.Time
}

// Error says why, and until when.
func (c *PostponedError) Error() string {
	return fmt.Sprintf("%s; closed until %s", c.Why, c.Until.UTC().Format(time.RFC3339))
}

// A Lesson is what a Gate made of an answer.
type Lesson struct {
	Origin  decorum.Origin
	Outcome Outcome
	// Hop is where the robots.txt was redirected to; zero if the lookup is
	// over. The caller queues it, and comes back with Gate.CheckHop.
	Hop       decorum.URL
	Open      bool            // pages may be visited
	Postponed *PostponedError // why not; nil if Open
	// Recheck is how the answer compares with the one before.
	Recheck Recheck
}

// A Recheck says what came of looking up again what was known.
type Recheck string

// The rechecks.
const (
	NoRecheck     Recheck = ""          // it was not known before, or the lookup goes on
	SameFile      Recheck = "same"      // as it was; of no file as well
	ChangedFile   Recheck = "changed"   // it is another, or there is none any more
	FailedRecheck Recheck = "no_answer" // the server failed: what is known may hold on
)

// A ChainEnd says that a hop ended its chain without a visit, since the known
// rules of the host it leads to disallow it (FETCH-05): the cause of an error
// of Kind decorum.Dropped. The caller acts on its Lesson as on one of Learn.
type ChainEnd struct {
	Lesson  Lesson
	Refusal *Refusal
}

// Error says what disallows the hop.
func (e *ChainEnd) Error() string {
	return "redirect of a robots.txt leads to a disallowed URL: " + e.Refusal.Error()
}
