package api

import (
	"net/netip"
	"time"

	"github.com/decorum-crawler/decorum/frontier"
)

// A HostQuery says which hosts of a project are wanted.
type HostQuery struct {
	Search     string // part of the name; empty: all
	State      string // of Host.State; empty: all
	Sort       string // host, state, queued, due, pace, last_status, robots_age, failures or requests; empty: what matters most
	Descending bool   // the largest first
	Offset     int    // how many of them to leave out
	Limit      int    // at most 1000; 0: 50
}

// A HostListPage is a part of the hosts of a project.
type HostListPage struct {
	AsOf         time.Time      `json:"at"`     // the moment that it shows
	Total        int            `json:"total"`  // hosts that fit the query, on all pages
	Offset       int            `json:"offset"` // of the first one here
	HostsByState map[string]int `json:"states"` // how many hosts of the project are in each state
	Hosts        []Host         `json:"hosts"`
}

// A HostTotals is what can be added up over hosts.
type HostTotals struct {
	Requests        int64        `json:"requests"`          // all that were made: robots.txt, sitemaps and retries too
	Pages           int64        `json:"pages"`             // visits to pages that were answered
	Failures        int64        `json:"failures"`          // requests without a whole answer, 408, 425, 429, 5xx
	Bytes           int64        `json:"bytes"`             // of bodies, as decoded
	RequestTime     Milliseconds `json:"spent_ms"`          // in requests
	KnownURLs       int          `json:"known"`             // URLs ever queued
	DoneURLs        int          `json:"done"`              // of KnownURLs: visited, or given up
	QueuedURLs      int          `json:"queued"`            // to be visited, or in hand
	AwaitingRevisit int          `json:"resting"`           // visited, and to be visited again
	ParkedURLs      int          `json:"parked"`            // kept aside: disallowed, or out of scope
	BlockedByRobots int          `json:"blocked_by_robots"` // of ParkedURLs
	BlockedByTDMRep int          `json:"blocked_by_tdmrep"` // of ParkedURLs
	OutOfScope      int          `json:"out_of_scope"`      // of ParkedURLs
	PagesWithheld   int64        `json:"withheld"`          // of Pages: their site asked not to use them for the crawl's purpose
	Coverage        float64      `json:"coverage"`          // DoneURLs / (KnownURLs - OutOfScope)
}

// A Host is what is known of one host of a project.
type Host struct {
	Host                  string       `json:"host"`
	State                 string       `json:"state"`               // due, waiting, held, set aside, resting or done
	DueAt                 time.Time    `json:"due_at,omitzero"`     // when its next URL can be visited; none if there is nothing to wait for
	HeldUntil             time.Time    `json:"held_until,omitzero"` // when the hold ends, if it is held or set aside
	HoldReason            string       `json:"why,omitempty"`       // why it is held or set aside
	CrawlDelay            Milliseconds `json:"declared_delay_ms"`   // the Crawl-delay of its robots.txt that was last in force; 0: none
	ConfiguredDelay       Milliseconds `json:"configured_delay_ms"` // the crawl's own delay that was last in force
	RequiredDelay         Milliseconds `json:"owed_ms"`             // the rest after its last request
	MinObservedDelay      Milliseconds `json:"least_gap_ms"`        // the shortest rest it had, from the end of an answer to the next request
	MedianObservedDelay   Milliseconds `json:"median_gap_ms"`       // half of its rests were no longer, to within 10 %
	ObservedDelayCount    int64        `json:"gaps"`                // that MinObservedDelay and MedianObservedDelay are of
	LargestDelayShortfall Milliseconds `json:"shortfall_ms"`        // the most by which a rest was shorter than what was owed: it must be 0
	ConsecutiveFailures   int          `json:"strikes"`             // failures in a row, as back-off counts them
	Slots                 int          `json:"slots"`               // visits at a time
	HostTotals
	LastStatus      int              `json:"last_status"`             // of the last request; 0: no answer came
	LastVisit       time.Time        `json:"last_visit,omitzero"`     // the end of the last request
	Address         netip.Addr       `json:"address,omitzero"`        // that answered last; none if it is not known
	Override        map[string]any   `json:"override,omitempty"`      // politeness.hosts, of this one
	Origins         []string         `json:"origins"`                 // schemes and ports under which it was met
	ParkedByRule    []RefusalSummary `json:"refusals,omitempty"`      // of its parked URLs; not in lists
	RobotsOutcome   string           `json:"robots,omitempty"`        // outcome of the lookup for its first origin, as in RobotsFile; of a daemon only
	RobotsFetchedAt time.Time        `json:"robots_fetched,omitzero"` // when the answer to that lookup came
	Brake           *Brake           `json:"brake,omitempty"`         // that is on it
}

// A HostDetail is all that is known of one host.
type HostDetail struct {
	Host
	ActiveVisits []ActiveVisit `json:"visits,omitempty"` // in hand
	RobotsFiles  []RobotsFile  `json:"robots_files"`     // of its origins, 100 at most, without their text
}

// A RefusalSummary is why URLs are parked: a rule of a robots.txt or tdmrep.json, or the
// scope.
type RefusalSummary struct {
	URLCount    int    `json:"urls"`
	RefusedBy   string `json:"why"`              // robots, tdmrep, scope or nothing
	RuleFileURL string `json:"robots,omitempty"` // the robots.txt, or tdmrep.json
	Rule        string `json:"rule,omitempty"`   // its rule, or what of the scope
	RuleLine    int    `json:"line,omitempty"`   // of the rule
	Example     string `json:"example"`          // one of the URLs
}

// A ReportQuery says how much of a report is wanted.
type ReportQuery struct {
	Host  string // of one host only; empty: all
	Limit int    // hosts, and rules; 0: all
}

// A CrawlReport is how a crawl stands.
type CrawlReport struct {
	AsOf            time.Time      `json:"at"`
	HostCount       int            `json:"host_count"`         // all hosts, though Hosts may be cut
	OriginCount     int            `json:"origin_count"`       // of all hosts
	HostsByState    map[string]int `json:"states"`             // how many hosts are in each state
	CrawlDelayLimit Milliseconds   `json:"max_crawl_delay_ms"` // a host that declares a longer Crawl-delay is set aside
	HostTotals
	LargestDelayShortfall Milliseconds     `json:"shortfall_ms"`       // the most of any host: it must be 0
	ParkedByRule          []RefusalSummary `json:"refusals,omitempty"` // of the parked URLs of all hosts, those of most URLs first
	// RefusalCounts counts sightings of URLs that were never queued, by host and reason.
	RefusalCounts []frontier.RefusalCount `json:"refused,omitempty"`
	// StrippedSessionIDsByHost counts sightings of URLs with the id of a session in the path, which
	// were queued without it, by host.
	StrippedSessionIDsByHost []frontier.RefusalCount `json:"cleaned,omitempty"`
	Hosts                    []*Host                 `json:"hosts"` // what asks most to be looked at comes first
}

// An AddURLsResult is what became of URLs that were offered.
type AddURLsResult struct {
	Added        int              `json:"added"`              // new, and queued
	Duplicates   int              `json:"known"`              // were there before, or twice among these
	Refused      int              `json:"refused"`            // out of scope
	InvalidLines int              `json:"not_urls"`           // lines that name no URL; blank ones and comments do not count
	Refusals     []RefusalSummary `json:"refusals,omitempty"` // of the refused ones, by reason
}
