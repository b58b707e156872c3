package api

import (
	"time"

	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots/gate"
)

// A URLExplanation says how a crawl treats a URL, and why.
type URLExplanation struct {
	Input         string                 `json:"input"` // the text of the query
	RewriteSteps  []RewriteStep          `json:"steps"` // from the text to url
	URL           string                 `json:"url"`   // the URL that is queued
	Scope         ExplainedScope         `json:"scope"`
	Robots        ExplainedRules         `json:"robots"`
	FrontierState ExplainedFrontierState `json:"state"`
	Host          *Host                  `json:"host,omitempty"` // as the crawl knows it
	Visit         ExplainedNextVisit     `json:"visit"`
}

// A RewriteStep is a step from a text to the URL that is queued.
type RewriteStep struct {
	Step    string   `json:"step"`          // canonical, https, params or clean_param
	URL     string   `json:"url"`           // the result of the step
	Changes []string `json:"why,omitempty"` // what the step changed, by which rule; empty: nothing
}

// ExplainedScope says whether a URL is in scope.
type ExplainedScope struct {
	InScope bool `json:"in"`
	// Reason says why the URL is out of scope, in one word, as decorum report counts it.
	Reason frontier.RefusalReason `json:"reason,omitempty"`
	// Detail is the reason as a sentence, with the limit that was reached.
	Detail string `json:"why,omitempty"`
	// CountedPattern is the pattern whose URLs max_urls_per_pattern counts; empty: the URL is not
	// counted.
	CountedPattern string `json:"pattern,omitempty"`
}

// ExplainedRules is what robots.txt says about a URL.
type ExplainedRules struct {
	// Outcome of the last lookup: unknown, rules, allow_all, disallow_all, cached_rules or following.
	Outcome               string    `json:"outcome"`
	FetchedAt             time.Time `json:"fetched,omitzero"` // when the answer to that lookup came
	OriginPostponedReason string    `json:"closed,omitempty"` // why the origin cannot be visited at present
	OriginPostponedUntil  time.Time `json:"until,omitzero"`   // if closed: when the robots.txt is fetched again
	// MayVisit reports whether the URL may be visited for the crawl's purposes; null: no rules are known.
	MayVisit *bool  `json:"judged,omitempty"`
	Reason   string `json:"because,omitempty"` // the rule that decides
	gate.Explanation
}

// ExplainedFrontierState is what the frontier knows about a URL.
type ExplainedFrontierState struct {
	State string `json:"state"` // unknown, queued, resting, parked or done
	// KnownAs is another form of the URL, queued before the rules that rewrite it were known.
	KnownAs       string       `json:"as,omitempty"`
	URLsAhead     int          `json:"ahead"`           // how many URLs of the origin go before it
	Entry         *FrontierURL `json:"entry,omitempty"` // its entry in the frontier; absent: it has none
	PriorityClass uint8        `json:"class"`           // 0 to 3: of the URLs of its origin, lower classes go first
	PriorityRank  uint16       `json:"rank"`            // within its class, lower ranks go first
}

// ExplainedNextVisit says when a URL will be visited.
type ExplainedNextVisit struct {
	When      string    `json:"when"`        // now, at, never or after (the URLs that go before it)
	NotBefore time.Time `json:"at,omitzero"` // the earliest time of the visit; absent if when is now or never
	Reason    string    `json:"why"`
	// FreshUntil is how long the last answer is fresh (RFC 9111), and FreshBy what says so: a directive of
	// Cache-Control such as max-age=60, Expires, or heuristic (by Last-Modified). Absent: it is not fresh, or
	// freshness does not count.
	FreshUntil time.Time `json:"fresh_until,omitzero"`
	FreshBy    string    `json:"fresh_by,omitempty"`
	// Decision is the one by which the crawl would not visit the URL at this moment, whether or not it
	// holds the URL; null: scope, rules, hours, Crawl-delay and port let it proceed.
	Decision *ExplainedDecision `json:"decision,omitempty"`
}

// An ExplainedDecision is the decision that a visit does not proceed.
type ExplainedDecision struct {
	Action string    `json:"action"`         // postpone, suspend (no run waits for it) or refuse
	Reason string    `json:"reason"`         // why, in words: a decorum.DecisionReason
	Until  time.Time `json:"until,omitzero"` // when the crawl decides again; none: when what reason names changes
	Rule   string    `json:"rule,omitempty"` // the rule of robots.txt or tdmrep.json that decides
	Line   int       `json:"line,omitempty"` // its line in that file, from 1 on
}
