package storage

import (
	"fmt"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum"
)

// An Entry is a URL to be visited and how it was found.
type Entry struct {
	URL                 decorum.URL          // what is to be visited
	Source              Source               // what it was found in
	PriorityClass       PriorityClass        // of an origin's URLs, ClassFirst goes first
	PriorityRank        uint16               // within the class: lower first
	Depth               int                  // links from the seed
	Referrer            string               // the page it was found on
	RobotsFor           decorum.Origin       // set on hops of a robots.txt redirect only
	FailedAttempts      int                  // visits that failed so far
	Redirects           int                  // in a row, that led to the URL
	CallbackData        []byte               // travels with the URL; at most MaxCallbackDataBytes bytes
	UncleanedURL        decorum.URL          // what the URL was found as, if Clean-param took something off; of the same origin
	UseUncleanedURL     bool                 // UncleanedURL is to be visited: nothing is at the URL
	HTTPSUpgradeTried   bool                 // on https, it was found on http; on http, nothing is at its twin on https
	Request             *NonGETRequest       // how the URL is asked for; nil: by GET
	Sent                bool                 // it was about to be sent, and must not be sent again: see Queue.MarkSent
	VisitHistorySummary *VisitHistorySummary // what the last visit left, copied; nil if there was none, or no revisit is wanted
}

// A VisitHistorySummary is what a visit leaves for the next visit to the same URL.
type VisitHistorySummary struct {
	VisitedAt             time.Time     // end of the last visit
	Status                int           // of the last visit
	ETag                  string        // of the last answer, as it came
	LastModified          string        // of the same
	BodyHash              uint64        // of the body; 0 if it is not known
	ComparedVisits        int           // visits that could be compared with the one before; old ones fade
	ChangedVisits         int           // how many of them found the page changed
	TotalComparedInterval time.Duration // between all these and the ones before them, added up
	SitemapLastmod        time.Time     // when it was modified as a sitemap says; zero if none did since the last visit
	ConsecutiveMissing    int           // visits in a row that found nothing there
}

// A Source says how a URL was found.
type Source uint8

// Sources, as the output names them.
const (
	SourceSeed Source = iota
	SourceLink
	SourceRedirect
	SourceSitemap
	SourceFeed
	SourceRevisit
	// SourcePrerequisite is no page but an errand of the crawl's own: a sitemap, or, with
	// RobotsFor set, a hop of a robots.txt redirect.
	SourcePrerequisite
)

var sourceNames = [...]string{"seed", "link", "redirect", "sitemap", "feed", "revisit", "robots"}

// String returns the name of the source.
func (s Source) String() string {
	if int(s) < len(sourceNames) {
		return sourceNames[s]
	}
	return "unknown"
}

// ParseSource returns the source of the name.
func ParseSource(name string) (Source, error) {
	if i := slices.Index(sourceNames[:], name); i >= 0 {
		return Source(i), nil
	}
	return 0, fmt.Errorf("%q is no source of a URL", name)
}

// A PriorityClass orders the URLs of one origin: lower first. Classes are 0 to 3.
type PriorityClass uint8

// Classes.
const (
	ClassFirst  PriorityClass = iota // robots.txt hops, URLs given back
	ClassEarly                       // seeds, sitemaps
	ClassNormal                      // links
	ClassLate                        // what can wait
	NumClasses  = iota               // how many there are
)
