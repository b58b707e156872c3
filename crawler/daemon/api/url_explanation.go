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
