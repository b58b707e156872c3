package api

import (
	"time"
)

// A RobotsFile is a robots.txt as it was fetched.
type RobotsFile struct {
	Origin                string          `json:"origin"`
	Outcome               string          `json:"outcome"`              // of the last lookup: unknown, rules, allow_all, disallow_all, cached_rules or following
	OriginPostponedReason string          `json:"closed,omitempty"`     // why the origin cannot be visited for now
	OriginPostponedUntil  time.Time       `json:"until,omitzero"`       // if closed: when it is asked for again
	FetchedAt             time.Time       `json:"fetched,omitzero"`     // when the answer came; of an older version, when it first did
	ExpiresAt             time.Time       `json:"fresh_until,omitzero"` // when it is asked for again
	SHA256                string          `json:"sha256,omitempty"`     // of the bytes, in hex; none if there is no file
	Bytes                 int             `json:"bytes"`                // of the file; 0 if none is kept
	CrawlDelay            Milliseconds    `json:"crawl_delay_ms"`       // the pause its rules ask of this crawl, Request-rate included; 0: none
	Sitemaps              []string        `json:"sitemaps,omitempty"`   // URLs that it names
	MainMirror            string          `json:"host,omitempty"`       // the main mirror that the file names; nobody goes there because of it
	FinalURL              string          `json:"at,omitempty"`         // the URL that redirects led to; empty: there were none
	Text                  string          `json:"text,omitempty"`       // what is not UTF-8 is replaced
	TextWithheldReason    string          `json:"withheld,omitempty"`   // why the text is not shown to the role read; empty: it is
	History               []RobotsVersion `json:"history,omitempty"`    // the newest first
	Diff                  *RobotsTextDiff `json:"diff,omitempty"`       // to another version, where one was named
}

// A RobotsVersion is a robots.txt that an origin had.
type RobotsVersion struct {
	SHA256         string    `json:"sha256"` // in hex: what version and against ask for
	Bytes          int       `json:"bytes"`
	FirstFetchedAt time.Time `json:"fetched"`      // when it first came
	FinalURL       string    `json:"at,omitempty"` // the URL that redirects led to; empty: there were none
}
