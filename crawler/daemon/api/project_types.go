package api

import (
	"time"
)

// A ProjectAction is what a project can be asked to do.
type ProjectAction string

// The actions.
const (
	ActionStart  ProjectAction = "start"  // crawl
	ActionPause  ProjectAction = "pause"  // begin no visit; what is in hand is finished
	ActionResume ProjectAction = "resume" // crawl on after a pause
	ActionStop   ProjectAction = "stop"   // as pause, and close the state; start goes on
)

// A ProjectState is what a project does.
type ProjectState string

// The states. What a project was told survives the daemon: what ran goes on.
const (
	StateRunning ProjectState = "running"
	StatePausing ProjectState = "pausing" // visits in hand are finished
	StatePaused  ProjectState = "paused"
	StateStopped ProjectState = "stopped"
	StateDone    ProjectState = "done"   // nothing is left to visit; more URLs start it again
	StateFailed  ProjectState = "failed" // Project.StateReason says why
)

// A Project is a crawl of the daemon's.
type Project struct {
	Name         string       `json:"name"`
	State        ProjectState `json:"state"`
	StateReason  string       `json:"why,omitempty"`        // why it failed, pauses or came up stopped by itself, or waits for the servers that keep its state
	FileError    string       `json:"file_error,omitempty"` // why its file, as it is now, is not followed
	FileLoadedAt time.Time    `json:"loaded,omitzero"`      // when the file that is followed was read; absent: none has been
	StateSince   time.Time    `json:"since"`                // when the state began
	UserAgent    string       `json:"user_agent"`           // of its requests; empty until its file makes sense
	HandlerName  string       `json:"handler,omitempty"`    // its callbacks; empty: links are followed
	Workers      int          `json:"workers"`              // visits at a time, of all hosts
	// MachinePauseReason is why no visit begins for now, though the project runs: this machine lacks a
	// network, or descriptors. Absent: visits begin.
	MachinePauseReason string `json:"paused,omitempty"`
	// MachineLoadVisitLimit is how many visits all projects make at a time because the machine is
	// too busy for more. Absent: no such limit.
	MachineLoadVisitLimit int              `json:"visit_limit,omitempty"`
	Stats                 ProjectStats     `json:"stats"`
	FrontierCounts        FrontierCounts   `json:"counts"`
	RecentThroughput      ThroughputSample `json:"rate"` // of the last seconds
	// LargestDelayShortfall is the most by which a rest of a host fell short, over all runs: it must be 0.
	LargestDelayShortfall Milliseconds `json:"shortfall_ms"`
}

// ProjectStats are what a project did since the daemon started.
type ProjectStats struct {
	Pages          int64 `json:"pages"`    // visits that were answered
	RobotsFetches  int64 `json:"robots"`   // visits to robots.txt files
	SitemapFetches int64 `json:"sitemaps"` // visits to sitemaps, indexes and feeds
	Bytes          int64 `json:"bytes"`    // of bodies, as decoded
	Errors         int64 `json:"errors"`   // visits without a whole answer, or answered with 429 or 5xx
	BlockedURLs    int64 `json:"blocked"`  // URLs that robots.txt or tdmrep.json disallows
	Retries        int64 `json:"retries"`  // visits to pages that failed, and are tried again later
	GivenUp        int64 `json:"given_up"` // pages that had failed too often
	Panics         int64 `json:"panics"`   // of callbacks
	LocalFaults    int64 `json:"local"`    // visits that failed on this machine; they are made again, and no host is charged
}

// FrontierCounts are what a project's frontier holds.
type FrontierCounts struct {
	QueuedHosts     int `json:"hosts"`   // with URLs to visit
	DueHosts        int `json:"due"`     // of hosts, those that can be visited now
	QueuedURLs      int `json:"queued"`  // to be visited, put off ones included, those in hand not
	LeasedURLs      int `json:"leased"`  // in hand
	ParkedURLs      int `json:"parked"`  // disallowed, or out of scope: kept until that changes
	AwaitingRevisit int `json:"resting"` // visited, and to be visited again
	SuspendedURLs   int `json:"dormant"` // of queued, those whose origin is closed for so long that no crawl waits for it
	SeenURLs        int `json:"seen"`    // ever queued
}

// A ThroughputSample is what a project did in a second, on average, before At.
type ThroughputSample struct {
	At              time.Time `json:"at"` // the end of what it is of
	PagesPerSecond  float64   `json:"pages"`
	BytesPerSecond  float64   `json:"bytes"`  // of bodies, as decoded
	ErrorsPerSecond float64   `json:"errors"` // as in ProjectStats
	QueuedURLs      int       `json:"queued"` // at that moment, no average
}

// ActiveVisit is a request in flight, or a page whose callbacks run.
type ActiveVisit struct {
	URL         string    `json:"url"`
	Host        string    `json:"host"`
	RequestedAt time.Time `json:"since"` // when its request was made
	Kind        string    `json:"kind"`  // page, robots or sitemap
}

// ProjectReloadResult is what became of a project file.
type ProjectReloadResult struct {
	Project string `json:"project"`
	Outcome string `json:"change"`          // none, new, changed, gone or refused
	Error   string `json:"error,omitempty"` // why the file is refused: the project goes on as it was
}
