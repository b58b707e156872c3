package frontier

import (
	"errors"

	"github.com/decorum-crawler/decorum"
)

// A RefusalReason is why a URL does not belong to a crawl, or not as it was found, in one
// word. Reports and stored counts name it, so it stays as it is.
type RefusalReason string

// Reasons.
const (
	WrongScheme        RefusalReason = "scheme"       // ScopeConfig.AllowFTP
	LongURL            RefusalReason = "url_length"   // ScopeConfig.MaxURLLength
	DeepLink           RefusalReason = "depth"        // ScopeConfig.MaxDepth
	OutsideScope       RefusalReason = "within"       // ScopeConfig.Mode
	NotIncluded        RefusalReason = "include"      // ScopeConfig.Include
	Excluded           RefusalReason = "exclude"      // ScopeConfig.Exclude
	TooManyRedirects   RefusalReason = "redirects"    // ScopeConfig.MaxRedirects
	DeepPath           RefusalReason = "path_depth"   // ScopeConfig.MaxPathDepth
	RepeatedPath       RefusalReason = "path_repeat"  // ScopeConfig.MaxPathRepeats
	TooManyParams      RefusalReason = "params"       // ScopeConfig.MaxParams
	FarCalendar        RefusalReason = "calendar"     // ScopeConfig.CurrentYear
	TooManyPatternURLs RefusalReason = "pattern_urls" // ScopeConfig.MaxURLsPerPattern
	TooManyHostURLs    RefusalReason = "host_urls"    // ScopeConfig.MaxURLsPerHost
	unknownReason      RefusalReason = "scope"

	TooManyDomainHosts RefusalReason = "domain_hosts" // ScopeConfig.MaxHostsPerDomain
	TooManyHosts       RefusalReason = "hosts"        // ScopeConfig.MaxHosts
	LowMemory          RefusalReason = "memory"       // Config.IsMemoryLow

	SessionID RefusalReason = "session_id" // no refusal: taken off the path
)

// A Refusal is why a URL does not belong to a crawl. It is the cause of an
// error of Kind OutOfScope.
type Refusal struct {
	Reason RefusalReason
	Detail string // for people, with the limit that was reached
}

// Error says why.
func (r *Refusal) Error() string { return r.Detail }

// RefusalReasonOf returns the reason of an error of Kind OutOfScope, "scope" if it
// gives none.
func RefusalReasonOf(err error) RefusalReason {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Reason
	}
	return unknownReason
}

// outOfScopeError returns the error that refuses u.
func outOfScopeError(u decorum.URL, refusal *Refusal) error {
	return &decorum.Error{Op: "scope", URL: u.String(), Kind: decorum.OutOfScope, Err: refusal}
}
