package frontier

import (
	"errors"

	"github.com/decorum-crawler/decorum"
)

// A RefusalReason says in one word why a URL does not belong to a crawl, or not as it was found.
// Its values never change, because reports and stored counts contain them.
type RefusalReason string

// The reasons, with the settings that cause them.
const (
	WrongScheme        RefusalReason = "scheme"       // ScopeConfig.AllowFTP
	LongURL            RefusalReason = "url_length"   // ScopeConfig.MaxURLLength
	DeepLink           RefusalReason = "depth"        // ScopeConfig.MaxDepth
	DeepChain          RefusalReason = "depth_chain"  // ScopeConfig.MaxDepth, for the next page of a list
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
	TooManySortLinks   RefusalReason = "sort_links"   // ScopeConfig.MaxSortLinksPerHost
	TooManyFeeds       RefusalReason = "feeds"        // ScopeConfig.MaxFeedsPerHost
	// ScopeConfig.MaxDuplicatesPerPattern
	DuplicatePattern RefusalReason = "duplicate_pattern"
	DuplicateLinks   RefusalReason = "duplicate_links" // see Frontier.DiscoverLinksOfDuplicate
	unknownReason    RefusalReason = "scope"           // an error of Kind OutOfScope without a Refusal

	TooManyDomainHosts RefusalReason = "domain_hosts" // ScopeConfig.MaxHostsPerDomain
	TooManyHosts       RefusalReason = "hosts"        // ScopeConfig.MaxHosts
	LowMemory          RefusalReason = "memory"       // Config.IsMemoryLow

	SessionID RefusalReason = "session_id" // not a refusal: the id was removed from the URL

	NoFollow       RefusalReason = "nofollow"        // not a refusal: see Frontier.CountNoFollowLink
	NeedsRendering RefusalReason = "needs_rendering" // not a refusal: see Frontier.CountUnrenderedPage
)

// A Refusal says why a URL does not belong to a crawl. It is the cause of an error of Kind
// decorum.OutOfScope.
type Refusal struct {
	Reason RefusalReason
	Detail string // shown to people; names the limit that was reached
}

// Error returns Detail.
func (r *Refusal) Error() string { return r.Detail }

// RefusalReasonOf returns the reason of an error of Kind decorum.OutOfScope, and "scope" if it
// contains no Refusal.
func RefusalReasonOf(err error) RefusalReason {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Reason
	}
	return unknownReason
}

// outOfScopeError returns the error of Kind decorum.OutOfScope for u.
func outOfScopeError(u decorum.URL, refusal *Refusal) error {
	return &decorum.Error{Op: "scope", URL: u.String(), Kind: decorum.OutOfScope, Err: refusal}
}
