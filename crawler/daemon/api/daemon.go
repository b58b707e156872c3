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
	// ProjectFile returns the project's file, as it is now.
	ProjectFile(ctx context.Context, name string) ([]byte, error)
	// PutProject makes a project, or changes it. A file that makes no sense is
	// refused, and changes nothing.
	PutProject(ctx context.Context, name string, file []byte) (created bool, err error)
	// DeleteProject stops a project, and moves its file and its state aside.
	DeleteProject(ctx context.Context, name string) error
	// Do asks for another state. What is so already is no error.
	Do(ctx context.Context, name string, action Action) error
	// Reload reads all project files again.
	Reload(ctx context.Context) ([]Reloaded, error)

	// AddURLs queues what lines name: URLs, or objects with url, depth and
	// referrer. It takes no more of them than the store can keep up with. An error
	// of lines, or ctx, ends it: the Intake says then what was taken before.
	AddURLs(ctx context.Context, name string, lines iter.Seq2[string, error]) (*Intake, error)
	// Hosts returns a page of the hosts of a project. They may be as they were some
	// seconds ago: HostPage.At.
	Hosts(ctx context.Context, name string, q HostQuery) (*HostPage, error)
	// Host returns all that is known of a host that the project has met.
	Host(ctx context.Context, name, host string) (*HostDetail, error)
	// Explain says what the project makes of a URL, and makes no request.
	Explain(ctx context.Context, name, url string) (*Explanation, error)
	// Report says how the project stands. It judges each parked URL: of many it
	// takes time.
	Report(ctx context.Context, name string, q ReportQuery) (*Report, error)
	// Robots returns the robots.txt of an origin: as it was fetched last, or, if
	// version is not empty, the one with that SHA-256.
	Robots(ctx context.Context, name, origin, version string) (*RobotsFile, error)

	// Visits returns the visits in hand.
	Visits(ctx context.Context, name string) ([]LiveVisit, error)
	// Throughput returns what the project did lately: a sample a second for the
	// last minutes, or, if coarse, one a minute for the last day.
	Throughput(ctx context.Context, name string, coarse bool) ([]Sample, error)
	// Events tells what happens, until ctx is done; of all projects if name is
	// empty. Who is too slow misses some, and is told so by an event.
	Events(ctx context.Context, name string) (iter.Seq[Event], error)

	// Brakes returns the brakes that are on, for all projects.
	Brakes(ctx context.Context) ([]Brake, error)
	// SetBrake stops or slows a host, of all projects, at once and durably.
	SetBrake(ctx context.Context, b Brake) error
	// LiftBrake takes a brake off.
	LiftBrake(ctx context.Context, host string) error

	// Ready returns nil if every project that should run does, or why not.
	Ready(ctx context.Context) error
	// About is what site owners may know.
	About() About
	// KeyDirectory returns the directory of the keys that requests are signed with,
	// for who asks for that of a host, which may have a port; nil: there is none.
	KeyDirectory(host string) *botauth.Directory
}

// An Action is what a project can be asked to do.
type Action string

// The actions.
const (
	Start  Action = "start"  // crawl
	Pause  Action = "pause"  // begin no visit; what is in hand is finished
	Resume Action = "resume" // crawl on after a pause
	Stop   Action = "stop"   // as pause, and close the state; start goes on
)

// A State is what a project does.
type State string

// The states. What a project was told survives the daemon: what ran goes on.
const (
	Running State = "running"
	Pausing State = "pausing" // visits in hand are finished
	Paused  State = "paused"
	Stopped State = "stopped"
	Done    State = "done"   // nothing is left to visit; more URLs start it again
	Failed  State = "failed" // Project.Why says why
)

// A Project is a crawl of the daemon's.
type Project struct {
	Name      string    `json:"name"`
	State     State     `json:"state"`
	Why       string    `json:"why,omitempty"`        // why it failed, pauses or came up stopped by itself, or waits for the servers that keep its state
	FileError string    `json:"file_error,omitempty"` // why its file, as it is now, is not followed
	Loaded    time.Time `json:"loaded,omitzero"`      // when the file that is followed was read; absent: none has been
	Since     time.Time `json:"since"`                // when the state began
	UserAgent string    `json:"user_agent"`           // of its requests; empty until its file makes sense
	Handler   string    `json:"handler,omitempty"`    // its callbacks; empty: links are followed
	Workers   int       `json:"workers"`              // visits at a time, of all hosts
	// Paused is why no visit begins for now, though the project runs: this machine lacks a
	// network, or descriptors. Absent: visits begin.
	Paused string `json:"paused,omitempty"`
	// VisitLimit is how many visits all projects make at a time because the machine is
	// too busy for more. Absent: no such limit.
	VisitLimit int    `json:"visit_limit,omitempty"`
	Stats      Stats  `json:"stats"`
	Counts     Counts `json:"counts"`
	Rate       Sample `json:"rate"` // of the last seconds
	// Shortfall is the most by which a rest of a host fell short, over all runs: it must be 0.
	Shortfall Milliseconds `json:"shortfall_ms"`
}

// Stats are what a project did since the daemon started.
type Stats struct {
	Pages    int64 `json:"pages"`    // visits that were answered
	Robots   int64 `json:"robots"`   // visits to robots.txt files
	Sitemaps int64 `json:"sitemaps"` // visits to sitemaps, indexes and feeds
	Bytes    int64 `json:"bytes"`    // of bodies, as decoded
	Errors   int64 `json:"errors"`   // visits without a whole answer, or answered with 429 or 5xx
	Blocked  int64 `json:"blocked"`  // URLs that robots.txt or tdmrep.json disallows
	Retries  int64 `json:"retries"`  // visits to pages that failed, and are tried again later
	GivenUp  int64 `json:"given_up"` // pages that had failed too often
	Panics   int64 `json:"panics"`   // of callbacks
	Local    int64 `json:"local"`    // visits that failed on this machine; they are made again, and no host is charged
}

// Counts are what a project's frontier holds.
type Counts struct {
	Hosts   int `json:"hosts"`   // with URLs to visit
	Due     int `json:"due"`     // of hosts, those that can be visited now
	Queued  int `json:"queued"`  // to be visited, put off ones included, those in hand not
	Leased  int `json:"leased"`  // in hand
	Parked  int `json:"parked"`  // disallowed, or out of scope: kept until that changes
	Resting int `json:"resting"` // visited, and to be visited again
	Dormant int `json:"dormant"` // of queued, those whose origin is closed for so long that no crawl waits for it
	Seen    int `json:"seen"`    // ever queued
}

// A Sample is what a project did in a second, on average, before At.
type Sample struct {
	At     time.Time `json:"at"` // the end of what it is of
	Pages  float64   `json:"pages"`
	Bytes  float64   `json:"bytes"`  // of bodies, as decoded
	Errors float64   `json:"errors"` // as in Stats
	Queued int       `json:"queued"` // at that moment, no average
}

// A LiveVisit is a request in flight, or a page whose callbacks run.
type LiveVisit struct {
	URL   string    `json:"url"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"` // when its request was made
	Kind  string    `json:"kind"`  // page, robots or sitemap
}

// An Event is something that happened.
type Event struct {
	At      time.Time    `json:"at"`
	Type    string       `json:"type"`              // state, visit, sample, brake, file, warning or missed
	Project string       `json:"project,omitempty"` // empty: of the daemon
	Host    string       `json:"host,omitempty"`
	URL     string       `json:"url,omitempty"`
	Status  int          `json:"status,omitempty"`  // of a visit; 0: no answer came
	Took    Milliseconds `json:"took_ms,omitempty"` // of a visit: from the request to the end of the answer
	Bytes   int64        `json:"bytes,omitempty"`   // of the body of a visit, as decoded
	State   State        `json:"state,omitempty"`   // of an event of type state: what the project does now
	Sample  *Sample      `json:"sample,omitempty"`  // of an event of type sample: the last second
	Text    string       `json:"text,omitempty"`    // for people
	Missed  int          `json:"missed,omitempty"`  // events that were not told
}

// Reloaded is what became of a project file.
type Reloaded struct {
	Project string `json:"project"`
	Change  string `json:"change"`          // none, new, changed, gone or refused
	Error   string `json:"error,omitempty"` // why the file is refused: the project goes on as it was
}

// A Brake stops or slows a host, in all projects.
type Brake struct {
	Host    string       `json:"host"`               // or domain, without scheme and port
	Domain  bool         `json:"domain,omitempty"`   // its subdomains as well
	Stop    bool         `json:"stop,omitempty"`     // no visit at all
	Delay   Milliseconds `json:"delay_ms,omitempty"` // else: at least this rest, one visit at a time
	Reason  string       `json:"reason"`             // for people; never empty
	By      string       `json:"by"`                 // the name of the token that put it on
	Since   time.Time    `json:"since"`              // when it was put on
	Expires time.Time    `json:"expires,omitzero"`   // zero: not by itself
}

// About is what a site owner may know of the crawler.
type About struct {
	Products []Product `json:"products"` // of all projects, each once
	Version  string    `json:"version"`  // of decorum
}

// A Product is a robots.txt name that the daemon crawls under.
type Product struct {
	Token     string `json:"token"`      // the product token that rules of a robots.txt name
	UserAgent string `json:"user_agent"` // the header that requests carry
	Contact   string `json:"contact"`    // the URL of a page, or a mailto: address
	// Keys is the URL of the keys that requests are signed with; empty: they are not.
	Keys string `json:"keys,omitempty"`
}
