package api

import (
	"context"
	"iter"
	"time"

	"github.com/decorum-crawler/decorum/crawler/botauth"
)

// A Daemon runs projects. Its methods may be called at the same time. Errors
// that somebody can do something about are a *Problem.
type Daemon interface {
	Projects(ctx context.Context) ([]Project, error)
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
	Hosts(ctx context.Context, name string, q HostQuery) (*HostPage, error)
	Host(ctx context.Context, name, host string) (*HostDetail, error)
	Explain(ctx context.Context, name, url string) (*Explanation, error)
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
	Why       string    `json:"why,omitempty"`        // it failed, pauses by itself, or waits for the servers that keep its state
	FileError string    `json:"file_error,omitempty"` // why its file, as it is now, is not followed
	Loaded    time.Time `json:"loaded"`               // when the file that is followed was read
	Since     time.Time `json:"since"`                // when the state began
	UserAgent string    `json:"user_agent"`
	Handler   string    `json:"handler,omitempty"`
	Workers   int       `json:"workers"`
	Stats     Stats     `json:"stats"`
	Counts    Counts    `json:"counts"`
	Rate      Sample    `json:"rate"` // of the last seconds
	// Shortfall is the most by which a rest of a host fell short, over all runs: it must be 0.
	Shortfall Milliseconds `json:"shortfall_ms"`
}

// Stats are what a project did since the daemon started.
type Stats struct {
	Pages    int64 `json:"pages"` // visits that were answered
	Robots   int64 `json:"robots"`
	Sitemaps int64 `json:"sitemaps"`
	Bytes    int64 `json:"bytes"` // of bodies, as decoded
	Errors   int64 `json:"errors"`
	Blocked  int64 `json:"blocked"` // URLs that robots.txt disallows
	Retries  int64 `json:"retries"`
	GivenUp  int64 `json:"given_up"`
	Panics   int64 `json:"panics"` // of callbacks
}

// Counts are what a project's frontier holds.
type Counts struct {
	Hosts   int `json:"hosts"` // with URLs to visit
	Due     int `json:"due"`   // of them, now
	Queued  int `json:"queued"`
	Leased  int `json:"leased"`
	Parked  int `json:"parked"`
	Resting int `json:"resting"`
	Dormant int `json:"dormant"`
	Seen    int `json:"seen"`
}

// A Sample is what a project did in a second, on average, before At.
type Sample struct {
	At     time.Time `json:"at"`
	Pages  float64   `json:"pages"`
	Bytes  float64   `json:"bytes"`
	Errors float64   `json:"errors"`
	Queued int       `json:"queued"`
}

// A LiveVisit is a request in flight, or a page whose callbacks run.
type LiveVisit struct {
	URL   string    `json:"url"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
	Kind  string    `json:"kind"` // page, robots or sitemap
}

// An Event is something that happened.
type Event struct {
	At      time.Time    `json:"at"`
	Type    string       `json:"type"` // state, visit, sample, brake, file, warning or missed
	Project string       `json:"project,omitempty"`
	Host    string       `json:"host,omitempty"`
	URL     string       `json:"url,omitempty"`
	Status  int          `json:"status,omitempty"`
	Took    Milliseconds `json:"took_ms,omitempty"`
	Bytes   int64        `json:"bytes,omitempty"`
	State   State        `json:"state,omitempty"`
	Sample  *Sample      `json:"sample,omitempty"`
	Text    string       `json:"text,omitempty"`   // for people
	Missed  int          `json:"missed,omitempty"` // events that were not told
}

// Reloaded is what became of a project file.
type Reloaded struct {
	Project string `json:"project"`
	Change  string `json:"change"` // none, new, changed, gone or refused
	Error   string `json:"error,omitempty"`
}

// A Brake stops or slows a host, in all projects.
type Brake struct {
	Host    string       `json:"host"`               // or domain
	Domain  bool         `json:"domain,omitempty"`   // its subdomains as well
	Stop    bool         `json:"stop,omitempty"`     // no visit at all
	Delay   Milliseconds `json:"delay_ms,omitempty"` // else: at least this rest, one visit at a time
	Reason  string       `json:"reason"`
	By      string       `json:"by"`
	Since   time.Time    `json:"since"`
	Expires time.Time    `json:"expires,omitzero"` // zero: not by itself
}

// About is what a site owner may know of the crawler.
type About struct {
	Products []Product `json:"products"`
	Version  string    `json:"version"`
}

// A Product is a robots.txt name that the daemon crawls under.
type Product struct {
	Token     string `json:"token"`
	UserAgent string `json:"user_agent"`
	Contact   string `json:"contact"`
	// Keys is the URL of the keys that requests are signed with; empty: they are not.
	Keys string `json:"keys,omitempty"`
}
