package api

import (
	"net/netip"
	"time"

	"github.com/decorum-crawler/decorum/frontier"
)

// A HostQuery selects and orders hosts of a project.
type HostQuery struct {
	Search string // hosts whose name contains it; empty: all
	State  string // hosts in this Host.State; empty: in any
	// Sort is host, state, queued, due, pace, last_status, robots_age, failures or requests; empty:
	// the hosts that need attention first.
	Sort       string
	Descending bool // the largest first
	Offset     int  // how many hosts to skip
	Limit      int  // the most hosts to return, at most 1000; 0: 50
}

// A HostListPage is a page of the list of a project's hosts.
type HostListPage struct {
	AsOf         time.Time      `json:"at"`     // the time that the list shows
	Total        int            `json:"total"`  // hosts that match the query, on all pages
	Offset       int            `json:"offset"` // of the first one here
	HostsByState map[string]int `json:"states"` // how many hosts of the project are in each state
	Hosts        []Host         `json:"hosts"`
}

// HostTraffic is what requests cost a host, or several hosts together: crawler.HostTraffic in JSON.
type HostTraffic struct {
	// Requests counts all requests, those for robots.txt and sitemaps and retries included.
	Requests int64 `json:"requests"`
	Bytes    int64 `json:"bytes"` // of bodies, as decoded
	// WireBytesSent counts the bytes written to connections: headers, bodies, framing and TLS handshakes,
	// without TCP and IP. The last bytes of a connection, which end it, do not count.
	WireBytesSent int64 `json:"wire_bytes_sent"`
	// WireBytesReceived counts the bytes read from connections, as wire_bytes_sent does.
	WireBytesReceived int64 `json:"wire_bytes_received"`
	Connections       int64 `json:"connections"`        // opened for requests
	FullHandshakes    int64 `json:"full_handshakes"`    // of connections: with a full TLS handshake
	ResumedHandshakes int64 `json:"resumed_handshakes"` // of connections: that resumed an earlier TLS session
	NotModified       int64 `json:"not_modified"`       // answers 304, which have no body
	// SavedByCompression is how many bytes longer the bodies would have been without Content-Encoding.
	SavedByCompression int64 `json:"saved_by_compression"`
	// SavedByRevalidation sums the lengths of the bodies that answers 304 spared, as they were sent last.
	SavedByRevalidation int64 `json:"saved_by_revalidation"`
}

// HostTotals holds the numbers that can be summed over hosts.
type HostTotals struct {
	HostTraffic
	Pages           int64        `json:"pages"`             // visits to pages that were answered
	Failures        int64        `json:"failures"`          // requests without a whole answer, 408, 425, 429, 5xx
	RequestTime     Milliseconds `json:"spent_ms"`          // the sum of the durations of requests
	KnownURLs       int          `json:"known"`             // URLs ever queued
	DoneURLs        int          `json:"done"`              // of KnownURLs: visited, or given up
	QueuedURLs      int          `json:"queued"`            // to be visited, those of visits in flight included
	AwaitingRevisit int          `json:"resting"`           // visited, and to be visited again
	ParkedURLs      int          `json:"parked"`            // kept without a visit: disallowed, or out of scope
	BlockedByRobots int          `json:"blocked_by_robots"` // of ParkedURLs: robots.txt disallows them
	BlockedByTDMRep int          `json:"blocked_by_tdmrep"` // of ParkedURLs: tdmrep.json disallows them
	OutOfScope      int          `json:"out_of_scope"`      // of ParkedURLs: the scope excludes them
	PagesWithheld   int64        `json:"withheld"`          // of Pages: their site refuses the crawl's use of them
	Coverage        float64      `json:"coverage"`          // DoneURLs / (KnownURLs - OutOfScope)
}

// A Host is what a crawl knows about one host.
type Host struct {
	Host  string `json:"host"`
	State string `json:"state"` // due, waiting, held, set aside, resting or done
	// DueAt is when its next URL can be visited; absent: it has none to wait for.
	DueAt      time.Time `json:"due_at,omitzero"`
	HeldUntil  time.Time `json:"held_until,omitzero"` // when the hold ends, if it is held or set aside
	HoldReason string    `json:"why,omitempty"`       // why it is held or set aside
	// CrawlDelay is the Crawl-delay of its robots.txt that was in force last; 0: none.
	CrawlDelay Milliseconds `json:"declared_delay_ms"`
	// ConfiguredDelay is the crawl's own delay that was in force last.
	ConfiguredDelay Milliseconds `json:"configured_delay_ms"`
	// LearnedDelay is the pause that it has turned out to need, by its answers 429 and 503; absent: none.
	LearnedDelay  Milliseconds `json:"learned_delay_ms,omitempty"`
	RequiredDelay Milliseconds `json:"owed_ms"` // the pause required after its last request
	// MinObservedDelay is its shortest pause, from the end of an answer to the next request.
	MinObservedDelay Milliseconds `json:"least_gap_ms"`
	// MedianObservedDelay is the median of its pauses, to within 10 %.
	MedianObservedDelay Milliseconds `json:"median_gap_ms"`
	// ObservedDelayCount is how many pauses MinObservedDelay and MedianObservedDelay cover.
	ObservedDelayCount int64 `json:"gaps"`
	// LargestDelayShortfall is the most by which a pause was shorter than required. It must be 0.
	LargestDelayShortfall Milliseconds `json:"shortfall_ms"`
	ConsecutiveFailures   int          `json:"strikes"` // as back-off counts them
	// BackoffReason says why it rests for longer than the other pauses; absent: it does not.
	BackoffReason string `json:"backoff_reason,omitempty"`
	// FailedPages are the pages that failed last and have not answered since, the newest first, at most 5.
	// Answers of 429 and 503 and requests without an answer do not count: they are failures of the host.
	FailedPages []FailedPage `json:"failed_pages,omitempty"`
	Slots       int          `json:"slots"` // visits at a time
	HostTotals
	LastStatus int            `json:"last_status"`         // of the last request; 0: no answer came
	LastVisit  time.Time      `json:"last_visit,omitzero"` // the end of the last request
	Address    netip.Addr     `json:"address,omitzero"`    // the IP address that answered last; absent: unknown
	Override   map[string]any `json:"override,omitempty"`  // the settings for this host in politeness.hosts
	// Origins lists the origins of the host that the crawl knows: scheme, host and port.
	Origins      []string         `json:"origins"`
	ParkedByRule []RefusalSummary `json:"refusals,omitempty"` // why its parked URLs are parked; absent in lists
	// RobotsOutcome is the outcome of the lookup for its first origin, as in RobotsFile; only a daemon sets it.
	RobotsOutcome   string    `json:"robots,omitempty"`
	RobotsFetchedAt time.Time `json:"robots_fetched,omitzero"` // when the answer to that lookup came
	Brake           *Brake    `json:"brake,omitempty"`         // the brake on the host; absent: none
}

// A FailedPage is a page whose last answer was a failure of the page.
type FailedPage struct {
	URL    string `json:"url"` // a long URL is cut, and ends with … and a hash
	Status int    `json:"status"`
}

// A HostDetail is everything that a project knows about one host.
type HostDetail struct {
	Host
	ActiveVisits []ActiveVisit `json:"visits,omitempty"` // the visits in flight
	RobotsFiles  []RobotsFile  `json:"robots_files"`     // of its origins, at most 100, without their text
}

// A RefusalSummary counts URLs that are refused for the same reason: a rule of a robots.txt or
// tdmrep.json, or the scope.
type RefusalSummary struct {
	URLCount    int    `json:"urls"`             // how many URLs are refused for this reason
	RefusedBy   string `json:"why"`              // robots, tdmrep, scope or nothing
	RuleFileURL string `json:"robots,omitempty"` // the robots.txt or tdmrep.json
	Rule        string `json:"rule,omitempty"`   // the rule of that file, or the part of the scope
	RuleLine    int    `json:"line,omitempty"`   // the line of the rule
	Example     string `json:"example"`          // one of the URLs
}

// A ReportQuery selects a part of a report.
type ReportQuery struct {
	Host  string // this host only; empty: all
	Limit int    // the most hosts, and the most rules, to return; 0: all
}

// A CrawlReport is the state of a crawl.
type CrawlReport struct {
	AsOf            time.Time      `json:"at"`
	HostCount       int            `json:"host_count"`         // all hosts, even if Hosts is cut short
	OriginCount     int            `json:"origin_count"`       // of all hosts
	HostsByState    map[string]int `json:"states"`             // how many hosts are in each state
	CrawlDelayLimit Milliseconds   `json:"max_crawl_delay_ms"` // a host with a longer Crawl-delay is suspended
	HostTotals
	LargestDelayShortfall Milliseconds `json:"shortfall_ms"` // the largest of any host; it must be 0
	// ParkedByRule says why the parked URLs of all hosts are parked, the rule of the most URLs first.
	ParkedByRule []RefusalSummary `json:"refusals,omitempty"`
	// RefusalCounts counts sightings of URLs that were never queued, by host and reason.
	RefusalCounts []frontier.RefusalCount `json:"refused,omitempty"`
	// ClosedPatterns lists patterns of URLs that are visited no longer, because nearly all of their pages
	// have the body of another page of the host.
	ClosedPatterns []frontier.ClosedPattern `json:"closed_patterns,omitempty"`
	// StrippedSessionIDsByHost counts sightings of URLs with a session ID in the path, which were
	// queued without it, by host.
	StrippedSessionIDsByHost []frontier.RefusalCount `json:"cleaned,omitempty"`
	// NotFollowed counts links that pages ask robots not to follow (nofollow), and pages without links that
	// need a browser (needs_rendering), by host and reason.
	NotFollowed []frontier.RefusalCount `json:"not_followed,omitempty"`
	Hosts       []*Host                 `json:"hosts"` // those that need attention first
}

// An AddURLsResult counts the outcomes of lines that were added.
type AddURLsResult struct {
	Added      int `json:"added"`   // new URLs, now queued
	Duplicates int `json:"known"`   // URLs known before, or repeated in the input
	Refused    int `json:"refused"` // URLs out of scope
	// InvalidLines counts lines without a valid URL. Blank lines and comments do not count.
	InvalidLines int              `json:"not_urls"`
	Refusals     []RefusalSummary `json:"refusals,omitempty"` // the refused URLs, by reason
}
