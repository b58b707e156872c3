package frontier

import (
	"errors"

	"github.com/decorum-crawler/decorum"
)

// A Reason is why a URL does not belong to a crawl, or not as it was found, in one
// word. Reports and stored counts name it, so it stays as it is.
type Reason string

// Reasons.
const (
	WrongScheme    Reason = "scheme"       // ScopeConfig.FTP
	LongURL        Reason = "url_length"   // ScopeConfig.MaxURLLength
	DeepLink       Reason = "depth"        // ScopeConfig.MaxDepth
	Elsewhere      Reason = "within"       // ScopeConfig.Within
	NotIncluded    Reason = "include"      // ScopeConfig.Include
	Excluded       Reason = "exclude"      // ScopeConfig.Exclude
	ManyRedirects  Reason = "redirects"    // ScopeConfig.MaxRedirects
	DeepPath       Reason = "path_depth"   // ScopeConfig.MaxPathDepth
	RepeatedPath   Reason = "path_repeat"  // ScopeConfig.MaxRepeat
	ManyParams     Reason = "params"       // ScopeConfig.MaxParams
	FarCalendar    Reason = "calendar"     // ScopeConfig.Year
	FullOfPattern  Reason = "pattern_urls" // ScopeConfig.MaxURLsPerPattern
	FullHost       Reason = "host_urls"    // ScopeConfig.MaxURLsPerHost
	unknownRefusal Reason = "scope"

	ManyHostsOfDomain Reason = "domain_hosts" // ScopeConfig.MaxHostsPerDomain
	ManyHosts         Reason = "hosts"        // ScopeConfig.MaxHosts
	LowMemory         Reason = "memory"       // Config.LowMemory

	SessionID Reason = "session_id" // no refusal: taken off the path
)

// A Refusal is why a URL does not belong to a crawl. It is the cause of an
// error of Kind OutOfScope.
type Refusal struct {
	Reason Reason
	Why    string // for people, with the limit that was reached
}

// Error says why.
func (r *Refusal) Error() string { return r.Why }

// ReasonOf returns the reason of an error of Kind OutOfScope, "scope" if it
// gives none.
func ReasonOf(err error) Reason {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Reason
	}
	return unknownRefusal
}

// outOfScope returns the error that refuses u.
func outOfScope(u decorum.URL, why *Refusal) error {
	return &decorum.Error{Op: "scope", URL: u.String(), Kind: decorum.OutOfScope, Err: why}
}
