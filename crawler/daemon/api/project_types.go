package api

import (
	"time"
)

// A ProjectAction is a change of state that a caller can request of a project.
type ProjectAction string

// The actions.
const (
	ActionStart  ProjectAction = "start"  // crawl
	ActionPause  ProjectAction = "pause"  // start no new visit, and finish the visits in flight
	ActionResume ProjectAction = "resume" // continue after a pause
	ActionStop   ProjectAction = "stop"   // pause, and close the state; ActionStart continues the crawl
)

// A ProjectState is what a project does.
type ProjectState string

// The states. The requested state survives a restart of the daemon: a project that ran
// continues.
const (
	StateRunning ProjectState = "running"
	StatePausing ProjectState = "pausing" // no visit starts; the visits in flight finish
	StatePaused  ProjectState = "paused"
	StateStopped ProjectState = "stopped"
	StateDone    ProjectState = "done"   // nothing is left to visit; new URLs start it again
	StateFailed  ProjectState = "failed" // Project.StateReason says why
)

// A Project is a crawl that the daemon runs.
type Project struct {
	Name  string       `json:"name"`
	State ProjectState `json:"state"`
	// StateReason says why the project failed, paused without a request, was stopped when the daemon
	// started, or waits for the servers that keep its state.
	StateReason string `json:"why,omitempty"`
	// FileError says why the present content of the project's file is not used.
	FileError string `json:"file_error,omitempty"`
	// FileLoadedAt is when the file in use was read; absent: no file has been used yet.
	FileLoadedAt time.Time `json:"loaded,omitzero"`
	StateSince   time.Time `json:"since"`             // when the state began
	UserAgent    string    `json:"user_agent"`        // of its requests; empty until its file is valid
	HandlerName  string    `json:"handler,omitempty"` // its callbacks; empty: links are followed
	Workers      int       `json:"workers"`           // visits at a time, of all hosts
	// MachinePauseReason says why no visit starts at present although the project runs: this machine
	// lacks a network, or file descriptors. Absent: visits start.
	MachinePauseReason string `json:"paused,omitempty"`
	// MachineLoadVisitLimit is the number of visits at a time that all projects together may make
	// while the machine is too busy for more. Absent: no such limit.
	MachineLoadVisitLimit int              `json:"visit_limit,omitempty"`
	Stats                 ProjectStats     `json:"stats"`
	FrontierCounts        FrontierCounts   `json:"counts"`
	RecentThroughput      ThroughputSample `json:"rate"` // of the last seconds
	// LargestDelayShortfall is the most by which a pause between two requests to a host was shorter
	// than required, over all runs. It must be 0.
	LargestDelayShortfall Milliseconds `json:"shortfall_ms"`
}

// ProjectStats counts what a project did since the daemon started.
type ProjectStats struct {
	Pages          int64 `json:"pages"`    // visits that were answered
	RobotsFetches  int64 `json:"robots"`   // visits to robots.txt files
	SitemapFetches int64 `json:"sitemaps"` // visits to sitemaps, indexes and feeds
	HostTraffic          // of all hosts together
	Errors         int64 `json:"errors"`   // visits without a whole answer, or answered with 429 or 5xx
	BlockedURLs    int64 `json:"blocked"`  // URLs that robots.txt or tdmrep.json disallows
	Retries        int64 `json:"retries"`  // visits to pages that failed, and are tried again later
	GivenUp        int64 `json:"given_up"` // pages that failed too often
	Panics         int64 `json:"panics"`   // of callbacks
	// LocalFaults counts visits that failed on this machine. They are repeated, and not charged to
	// the host.
	LocalFaults int64 `json:"local"`
	// StaleConns counts visits that a server ended by closing a kept-open connection before any byte of
	// the answer. They are repeated, and not charged to the host.
	StaleConns int64 `json:"stale_connections"`
}

// FrontierCounts counts the URLs and hosts in a project's frontier.
type FrontierCounts struct {
	QueuedHosts     int `json:"hosts"`   // hosts with URLs to visit
	DueHosts        int `json:"due"`     // hosts that can be visited now
	QueuedURLs      int `json:"queued"`  // URLs to visit, postponed ones included, leased ones not
	LeasedURLs      int `json:"leased"`  // URLs of visits in flight
	ParkedURLs      int `json:"parked"`  // URLs that are disallowed or out of scope, kept until that changes
	AwaitingRevisit int `json:"resting"` // visited URLs that will be visited again
	SuspendedURLs   int `json:"dormant"` // queued URLs whose origin is closed for too long for any crawl to wait
	SeenURLs        int `json:"seen"`    // URLs ever queued
}

// A ThroughputSample is the average throughput of a project per second, in the period that At
// ends.
type ThroughputSample struct {
	At              time.Time `json:"at"` // the end of the period
	PagesPerSecond  float64   `json:"pages"`
	BytesPerSecond  float64   `json:"bytes"`  // of bodies, as decoded
	ErrorsPerSecond float64   `json:"errors"` // as in the project's stats
	QueuedURLs      int       `json:"queued"` // the number at the end of the period, not an average
}

// ActiveVisit is a request in flight, or a page whose callbacks run.
type ActiveVisit struct {
	URL         string    `json:"url"`
	Host        string    `json:"host"`
	RequestedAt time.Time `json:"since"` // when the request was sent
	Kind        string    `json:"kind"`  // page, robots or sitemap
}

// ProjectReloadResult is the outcome of reading one project file again.
type ProjectReloadResult struct {
	Project string `json:"project"`
	Outcome string `json:"change"`          // none, new, changed, gone or refused
	Error   string `json:"error,omitempty"` // why the file is refused; the project continues with its old one
}
