package frontier

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/crawler/httpcache"
	"github.com/decorum-crawler/decorum/storage"
)

// A RevisitMode says how the time of a page's next visit is computed.
type RevisitMode uint8

// The modes.
const (
	NoRevisit       RevisitMode = iota // each page is visited once
	IntervalRevisit                    // always after RevisitPolicy.Interval
	AdaptiveRevisit                    // by how often visits found the page changed
)

var revisitModeNames = [...]string{NoRevisit: "none", IntervalRevisit: "interval", AdaptiveRevisit: "adaptive"}

// ParseRevisitMode returns the mode of that name: none, interval or adaptive.
func ParseRevisitMode(name string) (RevisitMode, error) {
	if i := slices.Index(revisitModeNames[:], name); i >= 0 {
		return RevisitMode(i), nil
	}
	return 0, fmt.Errorf("%q is not one of none, interval, adaptive", name)
}

// A RevisitPolicy computes when pages are visited again, from what visits observed. All that it
// needs to remember of a page is a storage.VisitHistorySummary. The zero RevisitPolicy visits no
// page again.
//
// In adaptive mode the rate of change of a page is estimated from how many of the last visits found
// it changed, with the bias-reduced estimator of Cho and Garcia-Molina (Estimating Frequency of
// Change, 2003). The page then rests for the geometric mean of two times: its mean time between
// changes, and the geometric mean of MinInterval and MaxInterval. Pages are thus visited in
// proportion to the square root of their rate of change. For a given number of visits, this
// minimises how long changes remain unseen; visits in proportion to the rate itself would nearly
// all go to the few pages that are outdated again at once.
type RevisitPolicy struct {
	Mode     RevisitMode
	Interval time.Duration // interval mode: from the end of a visit to the next
	// MinInterval and MaxInterval bound the same time in adaptive mode. A new page rests for their
	// geometric mean.
	MinInterval, MaxInterval time.Duration
	// MaxFreshness bounds how long a page rests because the last answer is fresh (RFC 9111), by the
	// word of the site: Cache-Control or Expires. The page is not visited before, whatever Interval,
	// MinInterval and MaxInterval are. 0 means DefaultMaxFreshness; negative: freshness does not count.
	MaxFreshness time.Duration
	// MaxHeuristicFreshness bounds the same in adaptive mode if the site says nothing, and the freshness
	// is estimated from Last-Modified. Such a page rests no longer than MaxInterval. 0 means
	// DefaultMaxHeuristicFreshness; negative: there is no estimate.
	MaxHeuristicFreshness time.Duration
	// MaxSitemapFreshness is MaxFreshness for sitemaps and feeds, if it is shorter: they list a page for a short
	// time only, so a page that is not seen then is lost. 0 means DefaultMaxSitemapFreshness; negative: sitemaps
	// and feeds are never fresh.
	MaxSitemapFreshness time.Duration
}

// Defaults of RevisitPolicy.
const (
	DefaultMaxFreshness          = 30 * 24 * time.Hour
	DefaultMaxHeuristicFreshness = 24 * time.Hour
	DefaultMaxSitemapFreshness   = 24 * time.Hour
)

// maxConsecutiveMissing is after how many consecutive visits with status 404 or 410 a page is given
// up.
const maxConsecutiveMissing = 3

const (
	// maxObservations is how many comparisons count in full. When there are that many, their
	// numbers are halved, so that the estimate follows a page that begins to change more or less
	// often.
	maxObservations = 16
	// maxIntervalGrowth bounds the growth of a page's rest: the rest is at most this many times the
	// time between its last visits, or their mean if that is longer.
	maxIntervalGrowth = 2
)

// A PageObservation holds what a visit observed of a page.
type PageObservation struct {
	At           time.Time // end of the visit
	Status       int
	ETag         string // validators, as the server sent them
	LastModified string
	Hash         uint64 // hash of the page's content; 0: unknown
	// NoStore says that no part of the answer may be stored. ETag and LastModified are then empty.
	NoStore bool
	// Fields of storage.VisitHistorySummary with these names.
	FreshFor            time.Duration
	FreshBy, VariantKey string
	// EncodedBodyLen is the length of the body in bytes, as it was sent; 0: unknown.
	EncodedBodyLen int64
}

// isMissing reports whether the page did not exist.
func (s PageObservation) isMissing() bool {
	return s.Status == http.StatusNotFound || s.Status == http.StatusGone
}

// differsFrom reports whether the page has changed since the visit that left before. If both hashes
// are known, they decide and validators do not, because servers send new validators for unchanged
// pages. If nothing can be compared, the page counts as unchanged.
func (s PageObservation) differsFrom(before storage.VisitHistorySummary) bool {
	switch {
	case s.Status == http.StatusNotModified:
		return false
	case s.Hash != 0 && before.BodyHash != 0:
		return s.Hash != before.BodyHash
	case s.ETag != "" && before.ETag != "":
		return s.ETag != before.ETag
	}
	return s.LastModified != "" && before.LastModified != "" && s.LastModified != before.LastModified
}

// IsEnabled reports whether pages are visited again.
func (r RevisitPolicy) IsEnabled() bool { return r.Mode != NoRevisit }

// A RevisitPlan says what follows from a visit to a page.
type RevisitPlan struct {
	Summary storage.VisitHistorySummary // to be stored until the next visit
	Delay   time.Duration               // from the end of the visit to the next one
	GiveUp  bool                        // the page was missing 3 times in a row: no next visit
	// IsComparable is set if there was an earlier visit and the page still exists, Changed if
	// IsComparable is set and the page is known to differ from that visit.
	IsComparable, Changed bool
}

// Plan returns what follows from a visit that observed s. before is the Summary after the last
// visit, nil if there was none.
func (r RevisitPolicy) Plan(before *storage.VisitHistorySummary, s PageObservation) (p RevisitPlan) {
	p.Summary, p.Delay = r.summaryAndDelay(before, s)
	p.Delay = max(p.Delay, r.FreshnessDelay(p.Summary))
	p.GiveUp = p.Summary.ConsecutiveMissing >= maxConsecutiveMissing
	p.IsComparable = before != nil && !s.isMissing()
	p.Changed = p.IsComparable && s.differsFrom(*before)
	return p
}

// FreshnessDelay returns how long after its last visit a page with history p rests at least because its
// answer was fresh.
func (r RevisitPolicy) FreshnessDelay(p storage.VisitHistorySummary) time.Duration {
	limit := cmp.Or(r.MaxFreshness, DefaultMaxFreshness)
	if p.FreshBy == httpcache.ByHeuristic {
		if r.Mode != AdaptiveRevisit { // an estimate does not overrule the interval that somebody has chosen
			return 0
		}
		limit = min(limit, cmp.Or(r.MaxHeuristicFreshness, DefaultMaxHeuristicFreshness), r.MaxInterval)
	}
	return max(min(p.FreshFor, limit), 0)
}

// SitemapFreshnessLimit returns the greatest PageObservation.FreshFor of a sitemap or feed.
func (r RevisitPolicy) SitemapFreshnessLimit() time.Duration {
	return max(cmp.Or(r.MaxSitemapFreshness, DefaultMaxSitemapFreshness), 0)
}

// summaryAndDelay returns RevisitPlan.Summary and RevisitPlan.Delay for Plan, without the effect of
// freshness on the delay.
func (r RevisitPolicy) summaryAndDelay(before *storage.VisitHistorySummary,
	s PageObservation) (storage.VisitHistorySummary, time.Duration) {
	if before == nil {
		before = &storage.VisitHistorySummary{}
	}
	p := *before
	p.VisitedAt, p.Status, p.SitemapLastmod = s.At, s.Status, time.Time{}
	p.FreshFor, p.FreshBy, p.VariantKey = s.FreshFor, s.FreshBy, s.VariantKey
	if s.isMissing() {
		// A missing page is visited ever less often. The history of its changes stays, but not its
		// validators: if it comes back, it must be fetched in full.
		p.ETag, p.LastModified, p.VariantKey = "", "", ""
		p.ConsecutiveMissing++
		return p, r.clampInterval(r.DelayAfterFailure(p) << min(max(p.ConsecutiveMissing, 0), maxConsecutiveMissing))
	}
	p.ConsecutiveMissing = 0
	// A 304 confirms the last body, whose hash and length stay; it may carry a new ETag.
	switch {
	case s.Status != http.StatusNotModified:
		p.ETag, p.LastModified, p.BodyHash, p.EncodedBodyLen = s.ETag, s.LastModified, s.Hash, s.EncodedBodyLen
	case s.NoStore:
		p.ETag, p.LastModified = "", ""
	case s.ETag != "":
		p.ETag = s.ETag
	}
	if p.ETag == "" && p.LastModified == "" {
		p.VariantKey = "" // which only says when they may be sent
	}
	// A first visit has nothing to compare with. Later ones add a comparison.
	if before.VisitedAt.IsZero() {
		return p, r.DelayAfterFailure(p)
	}
	elapsed := max(s.At.Sub(before.VisitedAt), 0)
	addVisitComparison(&p, elapsed, s.differsFrom(*before))
	return p, r.interval(p, elapsed)
}

// DelayAfterFailure returns how long a page rests after a visit that observed nothing of it.
func (r RevisitPolicy) DelayAfterFailure(p storage.VisitHistorySummary) time.Duration {
	return r.interval(p, 0)
}

// addVisitComparison adds to p a comparison of two visits that were elapsed apart.
func addVisitComparison(p *storage.VisitHistorySummary, elapsed time.Duration, changed bool) {
	p.ComparedVisits++
	p.TotalComparedInterval += elapsed
	if changed {
		p.ChangedVisits++
	}
	if p.ComparedVisits >= maxObservations {
		p.ComparedVisits, p.ChangedVisits, p.TotalComparedInterval = p.ComparedVisits/2,
			p.ChangedVisits/2, p.TotalComparedInterval/2
	}
}

// interval returns how long a page with history p rests. elapsed is the time between its last two
// visits, 0 if it is unknown.
func (r RevisitPolicy) interval(p storage.VisitHistorySummary, elapsed time.Duration) time.Duration {
	if r.Mode != AdaptiveRevisit {
		return r.Interval
	}
	middle := math.Sqrt(float64(r.MinInterval) * float64(r.MaxInterval))
	if p.ComparedVisits <= 0 || p.TotalComparedInterval <= 0 {
		return r.clampInterval(time.Duration(middle))
	}
	mean := p.TotalComparedInterval / time.Duration(p.ComparedVisits)
	maxDelay := maxIntervalGrowth * float64(max(mean, elapsed))
	return r.clampInterval(time.Duration(min(maxDelay, math.Sqrt(float64(mean)/changesPerVisit(p)*middle))))
}

// changesPerVisit estimates how many times a page changes between two visits on average. It is 0 if
// no visit found the page changed.
func changesPerVisit(p storage.VisitHistorySummary) float64 {
	n, x := float64(p.ComparedVisits), float64(min(max(p.ChangedVisits, 0), p.ComparedVisits))
	return math.Log((n + 0.5) / (n - x + 0.5))
}

// clampInterval returns d limited to the policy's bounds.
func (r RevisitPolicy) clampInterval(d time.Duration) time.Duration {
	if r.Mode != AdaptiveRevisit {
		return max(d, r.Interval)
	}
	return min(max(d, r.MinInterval), r.MaxInterval)
}
