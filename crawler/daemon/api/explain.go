package api

import (
	"time"

	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots"
)

// An Explanation is all that a crawl makes of a URL.
type Explanation struct {
	Input  string         `json:"input"`
	Steps  []Rewriting    `json:"steps"` // from the text to URL
	URL    string         `json:"url"`   // under which it is queued
	Scope  ExplainedScope `json:"scope"`
	Robots ExplainedRules `json:"robots"`
	State  ExplainedState `json:"state"`
	Host   *Host          `json:"host,omitempty"` // as the crawl knows it
	Visit  ExplainedVisit `json:"visit"`
}

// A Rewriting is a step from a text to the URL that is queued.
type Rewriting struct {
	Step string   `json:"step"`          // canonical, https, params or clean_param
	URL  string   `json:"url"`           // after it
	Why  []string `json:"why,omitempty"` // what was changed, by which rule; empty: nothing was
}

// ExplainedScope is whether a URL is in scope.
type ExplainedScope struct {
	In      bool            `json:"in"`
	Reason  frontier.Reason `json:"reason,omitempty"` // why not
	Why     string          `json:"why,omitempty"`    // likewise
	Pattern string          `json:"pattern,omitempty"`
}

// ExplainedRules are what robots.txt says of a URL.
type ExplainedRules struct {
	Outcome string    `json:"outcome"`           // of the lookup
	Fetched time.Time `json:"fetched,omitzero"`  // when
	Closed  string    `json:"closed,omitempty"`  // why the origin cannot be visited for now
	Until   time.Time `json:"until,omitzero"`    // it is closed
	Judged  *bool     `json:"judged,omitempty"`  // as a crawl does, purposes included; nil: no rules are known
	Reason  string    `json:"because,omitempty"` // the rule that decides
	robots.Explanation
}

// ExplainedState is what the frontier holds of a URL.
type ExplainedState struct {
	State string `json:"state"`        // unknown, queued, resting, parked or done
	As    string `json:"as,omitempty"` // another URL under which the crawl has met it, before it knew its rules
	Ahead int    `json:"ahead"`        // URLs of the origin that go before it
	Entry *URL   `json:"entry,omitempty"`
	Class uint8  `json:"class"`
	Rank  uint16 `json:"rank"`
}

// ExplainedVisit is when a URL is visited.
type ExplainedVisit struct {
	When string    `json:"when"` // now, at, never or after (the URLs that go before it)
	At   time.Time `json:"at,omitzero"`
	Why  string    `json:"why"`
}

// A URL is all that is kept of a URL in the frontier.
type URL struct {
	Type      string    `json:"type,omitempty"` // url, in an export
	URL       string    `json:"url"`
	State     string    `json:"state"`
	At        time.Time `json:"at,omitzero"`
	Why       string    `json:"why,omitempty"`
	Source    string    `json:"source"`
	Class     uint8     `json:"class"`
	Rank      uint16    `json:"rank,omitempty"`
	Depth     int       `json:"depth"`
	Referrer  string    `json:"referrer,omitempty"`
	For       string    `json:"for,omitempty"` // the origin, of a hop of its robots.txt
	Attempt   int       `json:"attempt,omitempty"`
	Redirects int       `json:"redirects,omitempty"`
	Context   []byte    `json:"context,omitempty"`
	Found     string    `json:"found,omitempty"`
	AsFound   bool      `json:"as_found,omitempty"`
	Folded    bool      `json:"folded,omitempty"`
	Method    string    `json:"method,omitempty"` // how it is asked for; empty: by GET
	Body      []byte    `json:"body,omitempty"`   // of the request
	Sent      bool      `json:"sent,omitempty"`   // and must not be sent again
	Page      *Page     `json:"page,omitempty"`
}

// A Page is what the last visit left: storage.Page.
type Page struct {
	Visited      time.Time `json:"visited,omitzero"`
	Status       int       `json:"status"`
	ETag         []byte    `json:"etag,omitempty"` // in base64: a server may send any bytes
	LastModified []byte    `json:"last_modified,omitempty"`
	Hash         string    `json:"hash,omitempty"` // in hex
	Visits       int       `json:"visits"`
	Changes      int       `json:"changes"`
	Span         int64     `json:"span_ns"`
	Listed       time.Time `json:"listed,omitzero"`
	Missing      int       `json:"missing,omitempty"`
}
