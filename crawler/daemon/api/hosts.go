package api

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"github.com/decorum-crawler/decorum/frontier"
)

// Milliseconds is a duration that JSON shows as milliseconds, rounded up: a
// shortfall of less than one is not none.
type Milliseconds time.Duration

// MarshalJSON writes a whole number.
func (m Milliseconds) MarshalJSON() ([]byte, error) {
	whole := (time.Duration(m) + time.Millisecond - 1) / time.Millisecond
	return fmt.Append(nil, int64(whole)), nil
}

// UnmarshalJSON reads a whole number.
func (m *Milliseconds) UnmarshalJSON(text []byte) error {
	var whole int64
	if err := json.Unmarshal(text, &whole); err != nil {
		return err
	}
	*m = Milliseconds(time.Duration(whole) * time.Millisecond)
	return nil
}

// A HostQuery says which hosts of a project are wanted.
type HostQuery struct {
	Search string // part of the name; empty: all
	State  string // of Host.State; empty: all
	Sort   string // host, state, queued, due, pace, last_status, robots_age, failures or requests; empty: what matters most
	Down   bool   // the largest first
	Offset int
	Limit  int // at most 1000; 0: 50
}

// A HostPage is a part of the hosts of a project.
type HostPage struct {
	At     time.Time      `json:"at"` // the moment that it shows
	Total  int            `json:"total"`
	Offset int            `json:"offset"`
	States map[string]int `json:"states"` // all hosts of the project in each
	Hosts  []Host         `json:"hosts"`
}

// A Tally is what can be added up over hosts.
type Tally struct {
	Requests   int64        `json:"requests"`
	Pages      int64        `json:"pages"`    // visits to pages that were answered
	Failures   int64        `json:"failures"` // requests without a whole answer, 408, 425, 429, 5xx
	Bytes      int64        `json:"bytes"`
	Spent      Milliseconds `json:"spent_ms"` // in requests
	Known      int          `json:"known"`    // URLs ever queued
	Done       int          `json:"done"`     // of Known: visited, or given up
	Queued     int          `json:"queued"`
	Resting    int          `json:"resting"` // visited, and to be visited again
	Parked     int          `json:"parked"`
	Blocked    int          `json:"blocked_by_robots"` // of Parked
	Reserved   int          `json:"blocked_by_tdmrep"` // of Parked
	OutOfScope int          `json:"out_of_scope"`      // of Parked
	Withheld   int64        `json:"withheld"`          // of Pages: their site asked not to use them for the crawl's purpose
	Coverage   float64      `json:"coverage"`          // Done / (Known - OutOfScope)
}

// A Host is what is known of one host of a project.
type Host struct {
	Host       string       `json:"host"`
	State      string       `json:"state"` // due, waiting, held, set aside, resting or done
	DueAt      time.Time    `json:"due_at,omitzero"`
	HeldUntil  time.Time    `json:"held_until,omitzero"`
	Why        string       `json:"why,omitempty"` // it is held
	Declared   Milliseconds `json:"declared_delay_ms"`
	Configured Milliseconds `json:"configured_delay_ms"`
	Owed       Milliseconds `json:"owed_ms"` // the rest after its last request
	Least      Milliseconds `json:"least_gap_ms"`
	Median     Milliseconds `json:"median_gap_ms"`
	Gaps       int64        `json:"gaps"` // that Least and Median are of
	Shortfall  Milliseconds `json:"shortfall_ms"`
	Strikes    int          `json:"strikes"` // failures in a row, as back-off counts them
	Slots      int          `json:"slots"`
	Tally
	LastStatus int            `json:"last_status"`
	LastVisit  time.Time      `json:"last_visit,omitzero"`
	Address    netip.Addr     `json:"address,omitzero"`
	Override   map[string]any `json:"override,omitempty"` // politeness.hosts, of this one
	Origins    []string       `json:"origins"`
	Refusals   []Refusal      `json:"refusals,omitempty"` // of its parked URLs; not in lists
	// The robots.txt of its first origin; in a daemon only.
	Robots        string    `json:"robots,omitempty"` // outcome of the lookup
	RobotsFetched time.Time `json:"robots_fetched,omitzero"`
	Brake         *Brake    `json:"brake,omitempty"` // that is on it
}

// A HostDetail is all that is known of one host.
type HostDetail struct {
	Host
	Visits []LiveVisit  `json:"visits,omitempty"` // in hand
	Files  []RobotsFile `json:"robots_files"`     // of its origins, without their text
}

// A Refusal is why URLs are parked: a rule of a robots.txt or tdmrep.json, or the
// scope.
type Refusal struct {
	URLs    int    `json:"urls"`
	Why     string `json:"why"`              // robots, tdmrep, scope or nothing
	File    string `json:"robots,omitempty"` // the robots.txt, or tdmrep.json
	Rule    string `json:"rule,omitempty"`   // its rule, or what of the scope
	Line    int    `json:"line,omitempty"`   // of the rule
	Example string `json:"example"`          // one of the URLs
}

// A ReportQuery says how much of a report is wanted.
type ReportQuery struct {
	Host  string // of one host only; empty: all
	Limit int    // hosts, and rules; 0: all
}

// A Report is how a crawl stands.
type Report struct {
	At       time.Time      `json:"at"`
	Count    int            `json:"host_count"`
	Origins  int            `json:"origin_count"`
	States   map[string]int `json:"states"` // hosts in each
	MaxDelay Milliseconds   `json:"max_crawl_delay_ms"`
	Tally
	Shortfall Milliseconds `json:"shortfall_ms"`
	Refusals  []Refusal    `json:"refusals,omitempty"`
	// Refused counts sightings of URLs that were never queued, by host and reason.
	Refused []frontier.Sighted `json:"refused,omitempty"`
	// Cleaned counts sightings of URLs with the id of a session in the path, which
	// were queued without it, by host.
	Cleaned []frontier.Sighted `json:"cleaned,omitempty"`
	Hosts   []*Host            `json:"hosts"`
}

// An Intake is what became of URLs that were offered.
type Intake struct {
	Added    int       `json:"added"`
	Known    int       `json:"known"`
	Refused  int       `json:"refused"`
	NoURLs   int       `json:"not_urls"`
	Refusals []Refusal `json:"refusals,omitempty"`
}

// A RobotsFile is a robots.txt as it was fetched.
type RobotsFile struct {
	Origin   string          `json:"origin"`
	Outcome  string          `json:"outcome"`          // of the last lookup
	Closed   string          `json:"closed,omitempty"` // why the origin cannot be visited for now
	Until    time.Time       `json:"until,omitzero"`   // it is closed
	Fetched  time.Time       `json:"fetched,omitzero"`
	Fresh    time.Time       `json:"fresh_until,omitzero"` // it is asked for again then
	SHA256   string          `json:"sha256,omitempty"`
	Bytes    int             `json:"bytes"`
	Delay    Milliseconds    `json:"crawl_delay_ms"`
	Sitemaps []string        `json:"sitemaps,omitempty"`
	Text     string          `json:"text,omitempty"`    // what is not UTF-8 is replaced
	History  []RobotsVersion `json:"history,omitempty"` // the newest first
	Diff     *RobotsDiff     `json:"diff,omitempty"`    // to another version, where one was named
}

// A RobotsVersion is a robots.txt that an origin had.
type RobotsVersion struct {
	SHA256  string    `json:"sha256"`
	Bytes   int       `json:"bytes"`
	Fetched time.Time `json:"fetched"` // first
}
