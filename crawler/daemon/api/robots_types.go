package api

import (
	"time"
)

// A RobotsFile is a robots.txt as it was fetched.
type RobotsFile struct {
	Origin string `json:"origin"`
	// Outcome of the last lookup: unknown, rules, allow_all, disallow_all, cached_rules or following.
	Outcome               string    `json:"outcome"`
	OriginPostponedReason string    `json:"closed,omitempty"` // why the origin cannot be visited at present
	OriginPostponedUntil  time.Time `json:"until,omitzero"`   // if closed: when the robots.txt is fetched again
	// FetchedAt is when the answer came; of an older version, when it came first.
	FetchedAt time.Time `json:"fetched,omitzero"`
	ExpiresAt time.Time `json:"fresh_until,omitzero"` // when the robots.txt is fetched again
	// SHA256 is the hash of the file's bytes, in hex. It is absent without a file.
	SHA256 string `json:"sha256,omitempty"`
	Bytes  int    `json:"bytes"` // size of the file; 0: no file is kept
	// CrawlDelay is the pause between requests that the rules for this crawl set, Request-rate
	// included; 0: they set none.
	CrawlDelay Milliseconds `json:"crawl_delay_ms"`
	Sitemaps   []string     `json:"sitemaps,omitempty"` // the URLs of its Sitemap lines
	// MainMirror is the value of its Host line, which does not change what is visited.
	MainMirror string `json:"host,omitempty"`
	FinalURL   string `json:"at,omitempty"`   // the URL that redirects led to; empty: there was no redirect
	Text       string `json:"text,omitempty"` // bytes that are not UTF-8 are replaced
	// TextWithheldReason says why the text is not shown to the role read; empty: it is shown.
	TextWithheldReason string          `json:"withheld,omitempty"`
	History            []RobotsVersion `json:"history,omitempty"` // the newest first
	Diff               *RobotsTextDiff `json:"diff,omitempty"`    // from the version that the query names as against
}

// A RobotsVersion is a version of the robots.txt of an origin.
type RobotsVersion struct {
	SHA256         string    `json:"sha256"` // in hex: the value for the parameters version and against
	Bytes          int       `json:"bytes"`
	FirstFetchedAt time.Time `json:"fetched"`      // when this version came first
	FinalURL       string    `json:"at,omitempty"` // the URL that redirects led to; empty: there was no redirect
}
