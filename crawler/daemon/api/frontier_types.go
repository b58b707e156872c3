package api

import (
	"time"
)

// A FrontierURLQuery selects URLs of a frontier.
type FrontierURLQuery struct {
	Host   string // URLs of this host only; empty: of all
	Origin string // URLs of this origin only, as https://example.com; empty: of all
	State  string // URLs in this FrontierURL.State only; empty: in any
	Limit  int    // the most URLs to return; 0: all
}

// FrontierStats counts the hosts and URLs of a frontier, and lists the files that hold it.
type FrontierStats struct {
	At              time.Time      `json:"at"`
	HostCount       int            `json:"host_count"`
	OriginCount     int            `json:"origin_count"`
	HostsByState    map[string]int `json:"states"` // how many hosts are in each state
	QueuedURLs      int            `json:"queued"`
	AwaitingRevisit int            `json:"resting"`
	ParkedURLs      int            `json:"parked"`
	SeenURLs        int            `json:"seen"`
	SuspendedURLs   int            `json:"set_aside"` // how many of QueuedURLs belong to suspended hosts
	// NextDueAt is when the next URL can be visited; absent if one can now.
	NextDueAt  time.Time        `json:"next_due,omitzero"`
	DueSince   time.Time        `json:"due_since,omitzero"` // since when the host has waited that is due longest
	StoreFiles []StoreFileStats `json:"files"`
}

// StoreFileStats holds the sizes of one file of a store, in bytes.
type StoreFileStats struct {
	Name      string `json:"name"`
	Bytes     int64  `json:"bytes"`
	FreeBytes int64  `json:"free_bytes"` // about how many of Bytes compact would free
}

// A FrontierURL is everything that the frontier keeps of a URL.
type FrontierURL struct {
	ExportLineType string `json:"type,omitempty"` // url, in an export
	URL            string `json:"url"`
	State          string `json:"state"` // queued, resting or parked
	// NotBefore is the earliest time of its visit; absent: it can be visited when its host is due.
	NotBefore     time.Time `json:"at,omitzero"`
	Reason        string    `json:"why,omitempty"`  // why it waits or is parked; in lists only
	Source        string    `json:"source"`         // seed, link, redirect, sitemap, feed, resource, revisit or robots
	PriorityClass uint8     `json:"class"`          // 0 to 3: of the URLs of its origin, lower classes go first
	PriorityRank  uint16    `json:"rank,omitempty"` // within its class, lower ranks go first
	Depth         int       `json:"depth"`          // links from a seed
	// Referrer is the URL of the page that it was found on.
	Referrer string `json:"referrer,omitempty"`
	// SeedOrigin is the origin of the seed that this is, or that led here by redirects alone; absent for
	// other URLs.
	SeedOrigin string `json:"seed_origin,omitempty"`
	// RobotsFor is the origin whose robots.txt redirected here; absent for other URLs.
	RobotsFor      string `json:"for,omitempty"`
	FailedAttempts int    `json:"attempt,omitempty"`   // consecutive visits that failed
	Redirects      int    `json:"redirects,omitempty"` // consecutive redirects that led to it
	// CallbackData is what callbacks attached to the URL, in base64, at most 64 KiB.
	CallbackData []byte `json:"context,omitempty"`
	// UncleanedURL is the URL as it was found, if a rule removed a part of it.
	UncleanedURL string `json:"found,omitempty"`
	// UseUncleanedURL means that UncleanedURL is visited, because nothing is at the other.
	UseUncleanedURL bool `json:"as_found,omitempty"`
	// On https: the URL was found on http. On http: nothing is at the same URL on https.
	HTTPSUpgradeTried bool   `json:"folded,omitempty"`
	Method            string `json:"method,omitempty"` // of the request; empty: GET
	RequestBody       []byte `json:"body,omitempty"`
	// Sent means that the request was sent, or was about to be, and must not be sent again.
	Sent bool `json:"sent,omitempty"`
	// VisitHistorySummary is the record of its visits; absent: it was never visited.
	VisitHistorySummary *VisitHistorySummary `json:"page,omitempty"`
}

// A VisitHistorySummary is what the frontier keeps of the visits to a URL:
// storage.VisitHistorySummary in JSON.
type VisitHistorySummary struct {
	VisitedAt    time.Time `json:"visited,omitzero"`        // the end of the last visit
	Status       int       `json:"status"`                  // of its answer
	ETag         []byte    `json:"etag,omitempty"`          // in base64, because a server may send any bytes
	LastModified []byte    `json:"last_modified,omitempty"` // in base64, as etag
	BodyHash     string    `json:"hash,omitempty"`          // of the body: 64 bits, in hex; 0 if unknown
	// ComparedVisits counts the visits that could be compared with the previous one; old visits lose weight.
	ComparedVisits int `json:"visits"`
	ChangedVisits  int `json:"changes"` // how many of the compared visits found the page changed
	// TotalComparedInterval is the sum of the times between compared visits, in nanoseconds.
	TotalComparedInterval int64 `json:"span_ns"`
	// SitemapLastmod is the modification time that a sitemap gave since the last visit.
	SitemapLastmod     time.Time `json:"listed,omitzero"`
	ConsecutiveMissing int       `json:"missing,omitempty"` // consecutive visits that found nothing there
	// FreshFor is how long after the last visit its answer was fresh (RFC 9111), in nanoseconds; for a sitemap
	// or feed at most revisit.max_sitemap_freshness.
	FreshFor int64 `json:"fresh_ns,omitempty"`
	// FreshBy is what made the answer fresh: a directive of Cache-Control such as max-age=60, Expires, or
	// heuristic (by Last-Modified).
	FreshBy string `json:"fresh_by,omitempty"`
	// VariantKey names the request headers on which the answer depended (Vary), with a hash of their values.
	// The validators are sent with the same headers only.
	VariantKey string `json:"variant,omitempty"`
	// EncodedBodyLen is the length of the last body in bytes, as it was sent; absent: unknown.
	EncodedBodyLen int64 `json:"encoded_bytes,omitempty"`
}
