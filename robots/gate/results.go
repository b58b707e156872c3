package gate

import (
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
)

// A FetchSummary says what is known about a robots.txt, and since when.
type FetchSummary struct {
	SHA256    string    // of the stored file, in hex; empty without a file
	FetchedAt time.Time // when the answer arrived; zero if there was none
	Outcome   Outcome
	// Answered says that a server has answered, if only with an error or a redirect. It is false for
	// servers with errors alone whose records are from earlier versions.
	Answered bool
}

// An Outcome is the result of fetching a robots.txt (DEF-05).
type Outcome uint8

// The outcomes.
const (
	OutcomeUnknown     Outcome = iota // there was no answer yet
	OutcomeRules                      // the rules of the file decide
	OutcomeAllowAll                   // the site has no file: everything is allowed
	OutcomeDisallowAll                // the server failed: nothing is allowed for now
	OutcomeCachedRules                // the server has failed for so long that the last good copy decides
	OutcomeRedirected                 // a redirect is being followed
)

// String returns the name of the outcome, as reports and records spell it.
func (o Outcome) String() string {
	names := [...]string{"unknown", "rules", "allow_all", "disallow_all", "cached_rules", "following"}
	if int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// A Refusal says why a URL is disallowed. It is the cause of an error of kind decorum.Disallowed.
type Refusal struct {
	Verdict      robots.Verdict
	FetchSummary FetchSummary
	// TDMRepSHA256 is the SHA-256, in hex, of the tdmrep.json that disallows the URL. Empty: the
	// robots.txt of FetchSummary disallows it.
	TDMRepSHA256 string
}

// Error returns the rule with its line and group.
func (r *Refusal) Error() string {
	v := r.Verdict
	if v.Rule == "" {
		return "no rule allows it"
	}
	return fmt.Sprintf("%s (line %d, group %s)", v.Rule, v.Line, v.Group)
}

// An OriginPostponedError says that the pages of an origin have to wait because its rules are not
// known. It is the cause of errors of kind decorum.Pending, while the robots.txt is being fetched, and
// decorum.Unreachable, after the fetch has failed.
type OriginPostponedError struct {
	Until time.Time // when to call Check again
	// Suspended: the fetch has failed so often that a crawl should not wait for the origin. See
	// Config.SuspendAfterFailures.
	Suspended           bool
	ConsecutiveFailures int    // failed fetches in a row
	Reason              string // a text for people
	// RedirectURL is the target of a redirect of the robots.txt that must be visited first, and
	// RedirectPendingSince is when the redirect was received. Both are zero without such a redirect.
	RedirectURL          decorum.URL
	RedirectPendingSince time.Time
}

// Error returns the reason and the time until which the pages wait.
func (c *OriginPostponedError) Error() string {
	return fmt.Sprintf("%s; closed until %s", c.Reason, c.Until.UTC().Format(time.RFC3339))
}

// A RecordFetchResult is the state of an origin after Gate.RecordFetch.
type RecordFetchResult struct {
	Origin  decorum.Origin // the origin of the robots.txt
	Outcome Outcome
	// RedirectURL is the target of a redirect of the robots.txt; zero if the fetch is complete. The
	// caller queues it, and calls Gate.CheckRobotsRedirect when its host is due.
	RedirectURL     decorum.URL
	HasRulesInForce bool                  // rules decide about pages
	PostponedErr    *OriginPostponedError // why pages wait; nil if HasRulesInForce
	// RecheckResult says how the answer compares with the one before.
	RecheckResult FileRecheckResult
}

// A FileRecheckResult is the result of fetching a robots.txt again.
type FileRecheckResult string

// The results of a recheck.
const (
	NoRecheck     FileRecheckResult = ""          // there was no answer before, or a redirect is being followed
	SameFile      FileRecheckResult = "same"      // the file has not changed, or is still missing
	ChangedFile   FileRecheckResult = "changed"   // the file is new, has changed or no longer exists
	FailedRecheck FileRecheckResult = "no_answer" // the server failed; the known rules may stay in force
)

// A RedirectDisallowedError says that a fetch of a robots.txt ended without a visit to the target of
// a redirect, because the known rules of the target's host disallow it (FETCH-05). It is the cause of
// an error of kind decorum.Dropped. The caller handles FetchResult like a result of RecordFetch.
type RedirectDisallowedError struct {
	FetchResult RecordFetchResult
	Refusal     *Refusal // the rule that disallows the target
}

// Error returns the rule that disallows the target of the redirect.
func (e *RedirectDisallowedError) Error() string {
	return "redirect of a robots.txt leads to a disallowed URL: " + e.Refusal.Error()
}
