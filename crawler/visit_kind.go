package crawler

import (
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// A VisitKind is what a visit is to. It is decided once, as soon as the clearance says what must
// come first.
type VisitKind uint8

// The kinds of visits.
const (
	PageVisit           VisitKind = iota // a URL that was found; its answer is for the Handler
	FeedVisit                            // a page that another announced as a feed: what it lists may be followed
	SitemapVisit                         // a sitemap to which robots.txt leads
	RobotsVisit                          // the robots.txt of the URL's origin, which must come first
	RobotsRedirectVisit                  // where the robots.txt of an origin was redirected to
	TDMRepVisit                          // the tdmrep.json of the URL's origin, which must come first
	// RobotsRefresh is no visit: its URL is that of a robots.txt, queued so that the gate is asked
	// about the origin again, and has the file fetched if it is old.
	RobotsRefresh
)

// visitKindOf returns what the visit that cl clears for l is to.
func visitKindOf(l storage.Lease, cl gate.Clearance) VisitKind {
	switch {
	case cl.IsForRobots() && l.RobotsFor.IsZero():
		return RobotsVisit
	case cl.IsForRobots():
		return RobotsRedirectVisit
	case cl.URL() != urlToVisit(l.Entry):
		return TDMRepVisit
	case isRobotsRefresh(l):
		return RobotsRefresh
	case l.Source == storage.SourcePrerequisite:
		return SitemapVisit
	case isAnnouncedFeed(l):
		return FeedVisit
	}
	return PageVisit
}

// isRobotsRefresh reports whether l is for a RobotsRefresh.
func isRobotsRefresh(l storage.Lease) bool {
	return l.RobotsFor.IsZero() && l.Source == storage.SourcePrerequisite && l.URL == l.URL.Origin().RobotsURL()
}

// isAnnouncedFeed reports whether a page announced what l leads to as a feed. It stays one
// when it is visited again, and when it has moved.
func isAnnouncedFeed(l storage.Lease) bool {
	return l.Source == storage.SourceFeed && string(l.CallbackData) == announcedFeedContext
}

// IsPage reports whether the answer is a page's, for the Handler. Other answers are for the crawl
// itself, and are read whatever their content type.
func (k VisitKind) IsPage() bool { return k == PageVisit || k == FeedVisit }

// IsRobots reports whether the answer is that of a robots.txt, and is for the gate.
func (k VisitKind) IsRobots() bool { return k == RobotsVisit || k == RobotsRedirectVisit }

// isConditional reports whether the request has the validators of the visit before. The gate and
// the reader of tdmrep.json need the file whole.
func (k VisitKind) isConditional() bool { return k.IsPage() || k == SitemapVisit }

// Ledger returns what a ledger calls the kind.
func (k VisitKind) Ledger() string {
	switch k {
	case RobotsVisit, RobotsRedirectVisit:
		return ledger.KindRobotsTXT
	case TDMRepVisit:
		return ledger.KindTDMRep
	case SitemapVisit, RobotsRefresh:
		return ledger.KindSitemap
	}
	return ledger.KindPage
}
