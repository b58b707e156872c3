package crawler

import (
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// A VisitKind is what a visit is to. The pipeline decides it once, as soon as the clearance says
// which file comes first.
type VisitKind uint8

// The kinds of visits.
const (
	PageVisit VisitKind = iota // a URL that was found; its answer goes to the Handler
	// a URL that a page announced as a feed, or a feed as its part; LinksToFollow also returns what it lists
	FeedVisit
	SitemapVisit        // a sitemap that robots.txt leads to
	RobotsVisit         // the robots.txt that must be known before the leased URL
	RobotsRedirectVisit // the target of a redirect of a robots.txt
	TDMRepVisit         // the tdmrep.json that must be known before the leased URL
	// RobotsRefresh makes no visit. Its entry has the URL of a robots.txt; leasing it makes the
	// gate check the origin again, and fetch the file if it is old.
	RobotsRefresh
)

// visitKindOf returns the kind of the visit that cl clears for l.
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
	case isFeed(l):
		return FeedVisit
	}
	return PageVisit
}

// isRobotsRefresh reports whether l is the lease of a RobotsRefresh.
func isRobotsRefresh(l storage.Lease) bool {
	return l.RobotsFor.IsZero() && l.Source == storage.SourcePrerequisite && l.URL == l.URL.Origin().RobotsURL()
}

// isFeed reports whether a page announced the URL of l as a feed, or a feed as a further part of itself.
// The URL stays one when it is visited again or redirects.
func isFeed(l storage.Lease) bool {
	data := string(l.CallbackData)
	return l.Source == storage.SourceFeed && (data == frontier.AnnouncedFeed || data == frontier.FeedPart)
}

// IsPage reports whether the answer goes to the Handler. The crawl itself reads the other answers,
// whatever their content type.
func (k VisitKind) IsPage() bool { return k == PageVisit || k == FeedVisit }

// IsRobots reports whether the answer is for the gate.
func (k VisitKind) IsRobots() bool { return k == RobotsVisit || k == RobotsRedirectVisit }

// isConditional reports whether the request carries the validators of the last visit. The gate and
// the tdmrep.json reader need the whole file.
func (k VisitKind) isConditional() bool { return k.IsPage() || k == SitemapVisit }

// Ledger returns the kind as a ledger names it.
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
