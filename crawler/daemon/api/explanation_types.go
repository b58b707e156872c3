package api

import (
	"time"

	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots/gate"
)

// A URLExplanation is all that a crawl makes of a URL.
type URLExplanation struct {
	Input         string                 `json:"input"` // the text that was asked about
	RewriteSteps  []RewriteStep          `json:"steps"` // from the text to URL
	URL           string                 `json:"url"`   // under which it is queued
	Scope         ExplainedScope         `json:"scope"`
	Robots        ExplainedRules         `json:"robots"`
	FrontierState ExplainedFrontierState `json:"state"`
	Host          *Host                  `json:"host,omitempty"` // as the crawl knows it
	Visit         ExplainedNextVisit     `json:"visit"`
}

// A RewriteStep is a step from a text to the URL that is queued.
type RewriteStep struct {
	Step    string   `json:"step"`          // canonical, https, params or clean_param
	URL     string   `json:"url"`           // after it
	Changes []string `json:"why,omitempty"` // what was changed, by which rule; empty: nothing was
}

// ExplainedScope is whether a URL is in scope.
type ExplainedScope struct {
	InScope        bool                   `json:"in"`
	Reason         frontier.RefusalReason `json:"reason,omitempty"`  // why not, in one word, as decorum report counts it
	Detail         string                 `json:"why,omitempty"`     // reason in words, with the limit that was reached
	CountedPattern string                 `json:"pattern,omitempty"` // under which max_urls_per_pattern counts it; empty: under none
}

// ExplainedRules are what robots.txt says of a URL.
type ExplainedRules struct {
	Outcome               string    `json:"outcome"`           // of the last lookup: unknown, rules, allow_all, disallow_all, cached_rules or following
	FetchedAt             time.Time `json:"fetched,omitzero"`  // when its answer came
	OriginPostponedReason string    `json:"closed,omitempty"`  // why the origin cannot be visited for now
	OriginPostponedUntil  time.Time `json:"until,omitzero"`    // if closed: when it is asked for again
	MayVisit              *bool     `json:"judged,omitempty"`  // whether it may be visited, purposes included; null: no rules are known
	Reason                string    `json:"because,omitempty"` // the rule that decides
	gate.Explanation
}

// ExplainedFrontierState is what the frontier holds of a URL.
type ExplainedFrontierState struct {
	State         string       `json:"state"`           // unknown, queued, resting, parked or done
	KnownAs       string       `json:"as,omitempty"`    // another URL under which the crawl has met it, before it knew its rules
	URLsAhead     int          `json:"ahead"`           // URLs of the origin that go before it
	Entry         *FrontierURL `json:"entry,omitempty"` // as it waits; none if it does not
	PriorityClass uint8        `json:"class"`           // 0 to 3: of the URLs of its origin, lower ones go first
	PriorityRank  uint16       `json:"rank"`            // within its class, lower ones go first
}

// ExplainedNextVisit is when a URL is visited.
type ExplainedNextVisit struct {
	When      string    `json:"when"`        // now, at, never or after (the URLs that go before it)
	NotBefore time.Time `json:"at,omitzero"` // the earliest time, unless when is now or never
	Reason    string    `json:"why"`
}

// A FrontierURL is all that is kept of a URL in the frontier.
type FrontierURL struct {
	ExportLineType      string               `json:"type,omitempty"` // url, in an export
	URL                 string               `json:"url"`
	State               string               `json:"state"`               // queued, resting or parked
	NotBefore           time.Time            `json:"at,omitzero"`         // not before; none if it waits for no time of its own
	Reason              string               `json:"why,omitempty"`       // why it waits, or is parked; in lists only
	Source              string               `json:"source"`              // seed, link, redirect, sitemap, feed, revisit or robots
	PriorityClass       uint8                `json:"class"`               // 0 to 3: of the URLs of its origin, lower ones go first
	PriorityRank        uint16               `json:"rank,omitempty"`      // within its class, lower ones go first
	Depth               int                  `json:"depth"`               // links from a seed
	Referrer            string               `json:"referrer,omitempty"`  // the page that it was found on
	RobotsFor           string               `json:"for,omitempty"`       // the origin, of a hop of its robots.txt
	FailedAttempts      int                  `json:"attempt,omitempty"`   // visits in a row that failed
	Redirects           int                  `json:"redirects,omitempty"` // in a row, that led to it
	CallbackData        []byte               `json:"context,omitempty"`   // what callbacks gave it on its way, in base64: at most 64 KiB
	UncleanedURL        string               `json:"found,omitempty"`     // what it was found as, if a rule took something off
	UseUncleanedURL     bool                 `json:"as_found,omitempty"`  // found is visited: nothing is at url
	HTTPSUpgradeTried   bool                 `json:"folded,omitempty"`    // on https: it was found on http; on http: nothing is at its twin on https
	Method              string               `json:"method,omitempty"`    // how it is asked for; empty: by GET
	RequestBody         []byte               `json:"body,omitempty"`      // of the request
	Sent                bool                 `json:"sent,omitempty"`      // it was sent, or about to be, and must not be sent again
	VisitHistorySummary *VisitHistorySummary `json:"page,omitempty"`      // what its last visit left; none if it was not visited
}

// A VisitHistorySummary is what the last visit left: storage.VisitHistorySummary.
type VisitHistorySummary struct {
	VisitedAt             time.Time `json:"visited,omitzero"`        // the end of the last visit
	Status                int       `json:"status"`                  // of its answer
	ETag                  []byte    `json:"etag,omitempty"`          // in base64: a server may send any bytes
	LastModified          []byte    `json:"last_modified,omitempty"` // in base64, as etag
	BodyHash              string    `json:"hash,omitempty"`          // of the body: 64 bits, in hex; 0 if it is not known
	ComparedVisits        int       `json:"visits"`                  // those that could be compared with the one before; old ones fade
	ChangedVisits         int       `json:"changes"`                 // how many of visits found the page changed
	TotalComparedInterval int64     `json:"span_ns"`                 // the times between visits, added up, in nanoseconds
	SitemapLastmod        time.Time `json:"listed,omitzero"`         // when it was modified, as a sitemap says that was read since
	ConsecutiveMissing    int       `json:"missing,omitempty"`       // visits in a row that found nothing there
}
