package api

import (
	"context"
	"iter"
	"time"

	"github.com/decorum-crawler/decorum/crawler/botauth"
)

// A Daemon runs projects. Its methods may be called at the same time. Errors
// that somebody can do something about are a *Problem: that of a name that no
// project has is NotFound.
type Daemon interface {
	// Projects returns all projects, by name.
	Projects(ctx context.Context) ([]Project, error)
	// Project returns one project.
	Project(ctx context.Context, name string) (*Project, error)
	// ReadProjectFile returns the project's file, as it is now.
	ReadProjectFile(ctx context.Context, name string) ([]byte, error)
	// PutProject makes a project, or changes it. A file that makes no sense is
	// refused, and changes nothing.
	PutProject(ctx context.Context, name string, file []byte) (created bool, err error)
	// DeleteProject stops a project, and moves its file and its state aside.
	DeleteProject(ctx context.Context, name string) error
	// ControlProject asks for another state. What is so already is no error.
	ControlProject(ctx context.Context, name string, action ProjectAction) error
	// ReloadProjects reads all project files again.
	ReloadProjects(ctx context.Context) ([]ProjectReloadResult, error)

	// Inspector returns what answers questions about a project, whether it runs or not.
	Inspector(ctx context.Context, name string) (Inspector, error)
	// Hosts returns a page of the hosts of a project. They may be as they were some
	// seconds ago: HostListPage.AsOf.
	Hosts(ctx context.Context, name string, q HostQuery) (*HostListPage, error)
	// HostDetail returns all that is known of a host that the project has met.
	HostDetail(ctx context.Context, name, host string) (*HostDetail, error)
	// RobotsFile returns the robots.txt of an origin: as it was fetched last, or, if
	// version is not empty, the one with that SHA-256.
	RobotsFile(ctx context.Context, name, origin, version string) (*RobotsFile, error)

	// ProjectActiveVisits returns the visits in hand.
	ProjectActiveVisits(ctx context.Context, name string) ([]ActiveVisit, error)
	// ProjectThroughput returns what the project did lately: a sample a second for the
	// last minutes, or, if coarse, one a minute for the last day.
	ProjectThroughput(ctx context.Context, name string, coarse bool) ([]ThroughputSample, error)
	// SubscribeEvents tells what happens, until ctx is done; of all projects if name is
	// empty. Who is too slow misses some, and is told so by an event.
	SubscribeEvents(ctx context.Context, name string) (iter.Seq[Event], error)

	// Brakes returns the brakes that are on, for all projects.
	Brakes(ctx context.Context) ([]Brake, error)
	// SetBrake stops or slows a host, of all projects, at once and durably.
	SetBrake(ctx context.Context, b Brake) error
	// LiftBrake takes a brake off.
	LiftBrake(ctx context.Context, host string) error

	// CheckReady returns nil if every project that should run does, or why not.
	CheckReady(ctx context.Context) error
	// CrawlerInfo is what site owners may know.
	CrawlerInfo() CrawlerInfo
	// PublishedSigningKeys returns the directory of the keys that requests are signed with,
	// for who asks for that of a host, which may have a port; nil: there is none.
	PublishedSigningKeys(host string) *botauth.KeyDirectory
}

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

// An Event is something that happened.
type Event struct {
	At           time.Time         `json:"at"`
	Type         string            `json:"type"`              // state, visit, sample, brake, file, warning or missed
	Project      string            `json:"project,omitempty"` // empty: of the daemon
	Host         string            `json:"host,omitempty"`
	URL          string            `json:"url,omitempty"`
	Status       int               `json:"status,omitempty"`  // of a visit; 0: no answer came
	Duration     Milliseconds      `json:"took_ms,omitempty"` // of a visit: from the request to the end of the answer
	Bytes        int64             `json:"bytes,omitempty"`   // of the body of a visit, as decoded
	State        ProjectState      `json:"state,omitempty"`   // of an event of type state: what the project does now
	Throughput   *ThroughputSample `json:"sample,omitempty"`  // of an event of type sample: the last second
	Message      string            `json:"text,omitempty"`    // for people
	MissedEvents int               `json:"missed,omitempty"`  // events that were not told
}

// ProjectReloadResult is what became of a project file.
type ProjectReloadResult struct {
	Project string `json:"project"`
	Outcome string `json:"change"`          // none, new, changed, gone or refused
	Error   string `json:"error,omitempty"` // why the file is refused: the project goes on as it was
}

// A Brake stops or slows a host, in all projects.
type Brake struct {
	Host           string       `json:"host"`               // or domain, without scheme and port
	WithSubdomains bool         `json:"domain,omitempty"`   // its subdomains as well
	Stop           bool         `json:"stop,omitempty"`     // no visit at all
	Delay          Milliseconds `json:"delay_ms,omitempty"` // else: at least this rest, one visit at a time
	Reason         string       `json:"reason"`             // for people; never empty
	By             string       `json:"by"`                 // the name of the token that put it on
	Since          time.Time    `json:"since"`              // when it was put on
	Expires        time.Time    `json:"expires,omitzero"`   // zero: not by itself
}

// CrawlerInfo is what a site owner may know of the crawler.
type CrawlerInfo struct {
	Identities []CrawlerIdentity `json:"products"` // of all projects, each once
	Version    string            `json:"version"`  // of decorum
}

// A CrawlerIdentity is a robots.txt name that the daemon crawls under.
type CrawlerIdentity struct {
	ProductToken string `json:"token"`      // the product token that rules of a robots.txt name
	UserAgent    string `json:"user_agent"` // the header that requests carry
	Contact      string `json:"contact"`    // the URL of a page, or a mailto: address
	// SigningKeyDirectoryURL is the URL of the keys that requests are signed with; empty: they are not.
	SigningKeyDirectoryURL string `json:"keys,omitempty"`
}
