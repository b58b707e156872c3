package storage

import (
	"fmt"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum"
)

// An Entry is a URL to visit, with how it was found and what earlier visits left.
type Entry struct {
	URL           decorum.URL   // to visit
	Source        Source        // how the URL was found
	PriorityClass PriorityClass // within the origin: lower first
	PriorityRank  uint16        // within the class: lower first
	Depth         int           // number of links from a seed
	Referrer      string        // URL of the page that the URL was found on
	// SeedOrigin is the origin of the seed that the URL is, or that led to the URL by redirects alone;
	// zero for every other URL.
	SeedOrigin decorum.Origin
	// RobotsFor is the origin whose robots.txt redirected to the URL; zero for every other URL.
	RobotsFor      decorum.Origin
	FailedAttempts int    // failed visits so far
	Redirects      int    // length of the chain of redirects that led to the URL
	CallbackData   []byte // the caller's data, copied by the Store; at most MaxCallbackDataBytes bytes
	// UncleanedURL is the URL as it was found, if Clean-param removed parameters; zero otherwise.
	// Both have the same origin.
	UncleanedURL decorum.URL
	// UseUncleanedURL says to visit UncleanedURL, because the server found nothing at URL.
	UseUncleanedURL bool
	// HTTPSUpgradeTried says that the https form of the URL was chosen before: an https URL was
	// found as http; an http URL returned to http, because its https form failed.
	HTTPSUpgradeTried bool
	Request           *NonGETRequest // the request to send; nil: GET
	// Sent says that Request may have been sent before and must not be sent again: see
	// Queue.MarkSent. Only an unsafe Request can have it.
	Sent bool
	// VisitHistorySummary is the result of earlier visits, copied by the Store; nil if the URL was
	// never visited or the crawl makes no revisits.
	VisitHistorySummary *VisitHistorySummary
}

// A VisitHistorySummary is what earlier visits to a URL leave for the next one.
type VisitHistorySummary struct {
	VisitedAt      time.Time // end of the last visit
	Status         int       // HTTP status of the last visit
	ETag           string    // of the last response, unchanged; at most MaxValidatorBytes bytes
	LastModified   string    // of the last response, unchanged; at most MaxValidatorBytes bytes
	BodyHash       uint64    // of the last body; 0: unknown
	ComparedVisits int       // visits compared with the visit before; old ones fade, see package frontier
	ChangedVisits  int       // compared visits that found the page changed
	// TotalComparedInterval is the sum of the times between each compared visit and the one before.
	TotalComparedInterval time.Duration
	SitemapLastmod        time.Time // modification time in a sitemap read since the last visit; or zero
	ConsecutiveMissing    int       // visits in a row that found no page
	// FreshFor is how long after VisitedAt the last response was fresh (RFC 9111), for a sitemap or feed as
	// far as that counts, and FreshBy what said so, in the words of package httpcache and in at most
	// MaxValidatorBytes bytes. 0: it was stale, or nothing is known.
	FreshFor time.Duration
	FreshBy  string
	// VariantKey says which requests may have ETag and LastModified: see httpcache.VariantKey. Empty: all.
	// At most MaxValidatorBytes bytes.
	VariantKey string
	// EncodedBodyLen is the length of the last body in bytes, as it was sent: before its Content-Encoding
	// was undone. 0: unknown.
	EncodedBodyLen int64
}

// A Source says how a URL was found. Its name appears in the output of a crawl.
type Source uint8

// Sources.
const (
	SourceSeed Source = iota
	SourceLink
	SourceRedirect
	SourceSitemap
	SourceFeed
	SourceRevisit
	// SourcePrerequisite marks a URL that the crawl itself needs: a sitemap, a robots.txt that is
	// fetched again or, with RobotsFor set, a redirect of a robots.txt. It is not a page.
	SourcePrerequisite
	// SourceResource marks what a browser needs to show a page: a style, script, font, image or the like.
	SourceResource
)

var sourceNames = [...]string{"seed", "link", "redirect", "sitemap", "feed", "revisit", "robots", "resource"}

// String returns the name of the source, "unknown" if it has none.
func (s Source) String() string {
	if int(s) < len(sourceNames) {
		return sourceNames[s]
	}
	return "unknown"
}

// ParseSource returns the Source whose String is name.
func ParseSource(name string) (Source, error) {
	if i := slices.Index(sourceNames[:], name); i >= 0 {
		return Source(i), nil
	}
	return 0, fmt.Errorf("unknown source %q of a URL", name)
}

// A PriorityClass orders the URLs of one origin: lower classes go first. Valid classes are 0 to 3.
type PriorityClass uint8

// Priority classes.
const (
	ClassFirst  PriorityClass = iota // redirects of a robots.txt
	ClassEarly                       // seeds, sitemaps
	ClassNormal                      // links
	ClassLate                        // URLs that can wait
	NumClasses  = iota               // number of classes
)
