package api

import (
	"time"
)

// A FrontierURLQuery says which URLs of a frontier are wanted.
type FrontierURLQuery struct {
	Host   string // of this host only; empty: of all
	Origin string // of this origin only, as https://example.com; empty: of all
	State  string // of FrontierURL.State; empty: all
	Limit  int    // at most so many; 0: all
}

// FrontierStats are the numbers of a frontier, and the files that hold it.
type FrontierStats struct {
	At              time.Time        `json:"at"`
	HostCount       int              `json:"host_count"`
	OriginCount     int              `json:"origin_count"`
	HostsByState    map[string]int   `json:"states"` // hosts in each
	QueuedURLs      int              `json:"queued"`
	AwaitingRevisit int              `json:"resting"`
	ParkedURLs      int              `json:"parked"`
	SeenURLs        int              `json:"seen"`
	SuspendedURLs   int              `json:"set_aside"`          // of QueuedURLs: of hosts that are set aside
	NextDueAt       time.Time        `json:"next_due,omitzero"`  // when the next URL can be visited, if none can now
	DueSince        time.Time        `json:"due_since,omitzero"` // since when the host waits that is due longest
	StoreFiles      []StoreFileStats `json:"files"`
}

// StoreFileStats are the sizes of one file of a store.
type StoreFileStats struct {
	Name      string `json:"name"`
	Bytes     int64  `json:"bytes"`
	FreeBytes int64  `json:"free_bytes"` // of them, which compact gives back, about
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
