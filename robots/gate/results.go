package gate

import (
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
)

// A FetchSummary says what of a robots.txt is known, and since when.
type FetchSummary struct {
	SHA256    string    // of the bytes that were kept, in hex; empty if the outcome is not of a file
	FetchedAt time.Time // when the answer came
	Outcome   Outcome
}

// An Outcome is what became of the lookup of a robots.txt (DEF-05).
type Outcome uint8

// The outcomes.
const (
	OutcomeUnknown     Outcome = iota // nothing is known yet
	OutcomeRules                      // the file's rules decide
	OutcomeAllowAll                   // there is no file: everything is allowed
	OutcomeDisallowAll                // the server failed: nothing is allowed for now
	OutcomeCachedRules                // it failed for so long that the last good copy decides
	OutcomeRedirected                 // a redirect is being followed
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
	Verdict      robots.Verdict
	FetchSummary FetchSummary
	TDMRepSHA256 string // SHA-256, in hex, of the tdmrep.json that the verdict is of; empty: it is of FetchSummary
}

// Error names the rule.
func (r *Refusal) Error() string {
	v := r.Verdict
	if v.Rule == "" {
		return "no rule allows it"
	}
	return fmt.Sprintf("%s (line %d, group %s)", v.Rule, v.Line, v.Group)
}

// OriginPostponedError says that an origin's pages cannot be visited for now, because its
// rules are not known: the cause of errors of Kind decorum.Pending, while its
// robots.txt is being looked up, and decorum.Unreachable, after that failed.
type OriginPostponedError struct {
	Until               time.Time // when to ask the Gate again
	Suspended           bool      // it failed so often that nobody should wait for it
	ConsecutiveFailures int       // how often it failed in a row
	Reason              string    // for people
	// RedirectURL is the redirect of its robots.txt that must be visited first, and
	// RedirectPendingSince when it has been waited for; zero if there is none.
	RedirectURL          decorum.URL
	RedirectPendingSince time.Time
}

// Error says why, and until when.
func (c *OriginPostponedError) Error() string {
	return fmt.Sprintf("%s; closed until %s", c.Reason, c.Until.UTC().Format(time.RFC3339))
}

// A RecordFetchResult is what a Gate made of an answer.
type RecordFetchResult struct {
	Origin  decorum.Origin
	Outcome Outcome
	// RedirectURL is where the robots.txt was redirected to; zero if the lookup is
	// over. The caller queues it, and comes back with Gate.CheckRobotsRedirect.
	RedirectURL     decorum.URL
	HasRulesInForce bool                  // pages may be visited
	PostponedErr    *OriginPostponedError // why not; nil if HasRulesInForce
	// RecheckResult is how the answer compares with the one before.
	RecheckResult FileRecheckResult
}

// A FileRecheckResult says what came of looking up again what was known.
type FileRecheckResult string

// The rechecks.
const (
	NoRecheck     FileRecheckResult = ""          // it was not known before, or the lookup goes on
	SameFile      FileRecheckResult = "same"      // as it was; of no file as well
	ChangedFile   FileRecheckResult = "changed"   // it is another, or there is none any more
	FailedRecheck FileRecheckResult = "no_answer" // the server failed: what is known may hold on
)

// A RedirectDisallowedError says that a hop ended its chain without a visit, since the known
// rules of the host it leads to disallow it (FETCH-05): the cause of an error
// of Kind decorum.Dropped. The caller acts on its FetchResult as on one of RecordFetch.
type RedirectDisallowedError struct {
	FetchResult RecordFetchResult
	Refusal     *Refusal
}

// Error says what disallows the hop.
func (e *RedirectDisallowedError) Error() string {
	return "redirect of a robots.txt leads to a disallowed URL: " + e.Refusal.Error()
}
