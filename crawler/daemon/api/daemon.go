package api

import (
	"context"
	"iter"

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
	// CrawlerIdentities is what site owners may know.
	CrawlerIdentities() CrawlerIdentities
	// PublishedSigningKeys returns the directory of the keys that requests are signed with,
	// for who asks for that of a host, which may have a port; nil: there is none.
	PublishedSigningKeys(host string) *botauth.KeyDirectory
}

// CrawlerIdentities is what a site owner may know of the crawler.
type CrawlerIdentities struct {
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
