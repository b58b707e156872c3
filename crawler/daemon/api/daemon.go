package api

import (
	"context"
	"iter"

	"github.com/decorum-crawler/decorum/crawler/botauth"
)

// A Daemon runs projects. Its methods are safe for concurrent use. An error that the
// caller can act on is a *Problem; for the name of an unknown project it is NotFound.
type Daemon interface {
	// Projects returns all projects, by name.
	Projects(ctx context.Context) ([]Project, error)
	// Project returns one project.
	Project(ctx context.Context, name string) (*Project, error)
	// ReadProjectFile returns the present content of the project's file.
	ReadProjectFile(ctx context.Context, name string) ([]byte, error)
	// PutProject creates a project, or changes it. An invalid file is refused and
	// changes nothing. created reports whether the project is new.
	PutProject(ctx context.Context, name string, file []byte) (created bool, err error)
	// DeleteProject stops a project, and moves its file and its state to the data
	// directory's folder of deleted projects.
	DeleteProject(ctx context.Context, name string) error
	// ControlProject changes the state of a project. A project that is in that state
	// already stays in it, without an error.
	ControlProject(ctx context.Context, name string, action ProjectAction) error
	// ReloadProjects reads all project files again, and returns one result for each.
	ReloadProjects(ctx context.Context) ([]ProjectReloadResult, error)

	// Inspector returns the Inspector of a project, whether the project runs or not.
	Inspector(ctx context.Context, name string) (Inspector, error)
	// Hosts returns a page of the hosts of a project. It may be some seconds old, as
	// HostListPage.AsOf says.
	Hosts(ctx context.Context, name string, q HostQuery) (*HostListPage, error)
	// HostDetail returns everything that the project knows about one of its hosts.
	HostDetail(ctx context.Context, name, host string) (*HostDetail, error)
	// RobotsFile returns the robots.txt of an origin: the last one that was fetched if
	// version is empty, otherwise the one whose SHA-256 is version, in hex.
	RobotsFile(ctx context.Context, name, origin, version string) (*RobotsFile, error)

	// ProjectActiveVisits returns the visits in flight.
	ProjectActiveVisits(ctx context.Context, name string) ([]ActiveVisit, error)
	// ProjectThroughput returns the recent throughput of the project: a sample a second
	// for the last minutes, or, if coarse, a sample a minute for the last day.
	ProjectThroughput(ctx context.Context, name string, coarse bool) ([]ThroughputSample, error)
	// SubscribeEvents yields the events of a project, or of all projects if name is empty,
	// until ctx is done. A subscriber that reads too slowly misses events; an event of type
	// missed says how many.
	SubscribeEvents(ctx context.Context, name string) (iter.Seq[Event], error)

	// Brakes returns the brakes in force. A brake holds for all projects.
	Brakes(ctx context.Context) ([]Brake, error)
	// SetBrake stops or slows a host in all projects, at once and durably.
	SetBrake(ctx context.Context, b Brake) error
	// LiftBrake removes the brake of a host.
	LiftBrake(ctx context.Context, host string) error

	// CheckReady returns nil if every project that should run does run. Otherwise the
	// error says why not; it may join one error for each project.
	CheckReady(ctx context.Context) error
	// CrawlerIdentities returns what site owners may know about the crawler.
	CrawlerIdentities() CrawlerIdentities
	// PublishedSigningKeys returns the directory of the keys that requests are signed with,
	// as it is published on host (a name, with or without a port). It returns nil if no
	// project publishes keys there.
	PublishedSigningKeys(host string) *botauth.KeyDirectory
}

// CrawlerIdentities is what a site owner may know about the crawler.
type CrawlerIdentities struct {
	Identities []CrawlerIdentity `json:"products"` // of all projects, each once
	Version    string            `json:"version"`  // of decorum
	// RobotsMaxTTL is the longest time for which a project uses a robots.txt whose Cache-Control or Expires
	// allows more than a day; absent: every project fetches each file at least once a day.
	RobotsMaxTTL Milliseconds `json:"robots_max_ttl_ms,omitempty"`
}

// A CrawlerIdentity is a robots.txt name that the daemon crawls under.
type CrawlerIdentity struct {
	ProductToken string `json:"token"`      // the product token that rules of a robots.txt name
	UserAgent    string `json:"user_agent"` // the header that requests carry
	Contact      string `json:"contact"`    // the URL of a page, or a mailto: address
	// SigningKeyDirectoryURL is the URL of the keys that requests are signed with; empty: requests are not signed.
	SigningKeyDirectoryURL string `json:"keys,omitempty"`
}
