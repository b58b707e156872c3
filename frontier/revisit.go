package frontier

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// A RevisitMode says how it is decided when a page is visited again.
type RevisitMode uint8

// Modes.
const (
	NoRevisit       RevisitMode = iota // each page is visited once
	IntervalRevisit                    // always after the same time
	AdaptiveRevisit                    // by how often the page has been found changed
)

var revisitModeNames = [...]string{NoRevisit: "none", IntervalRevisit: "interval", AdaptiveRevisit: "adaptive"}

// ParseRevisitMode returns the mode of that name.
func ParseRevisitMode(name string) (RevisitMode, error) {
	if i := slices.Index(revisitModeNames[:], name); i >= 0 {
		return RevisitMode(i), nil
	}
	return 0, fmt.Errorf("%q is not one of none, interval, adaptive", name)
}

// A RevisitPolicy is a plan of when pages are visited again. It is arithmetic on what
// visits saw; all that it remembers of a page is a storage.VisitHistorySummary. The zero value
// visits no page again.
//
// In adaptive mode the rate at which a page changes is estimated from how many
// of the last visits found it changed, with the bias-reduced estimator of Cho
// and Garcia-Molina (Estimating Frequency of Change, 2003). The page then rests
// for the geometric mean of its time between changes and the middle of the
// plan: pages are visited as often as the square root of how often they change.
// Of all ways to spend a number of visits, that one keeps changes waiting the
// least to be seen; to visit in proportion to the rate spends nearly all
// visits on the few pages that are stale again at once.
type RevisitPolicy struct {
	Mode     RevisitMode
	Interval time.Duration // interval: from the end of a visit to the next
	// MinInterval and MaxInterval bound the same in adaptive mode. A new page rests for the
	// middle between them, their geometric mean.
	MinInterval, MaxInterval time.Duration
}

// maxConsecutiveMissing is how many visits in a row find nothing before a page is given up.
const maxConsecutiveMissing = 3

const (
	// maxObservations is how many observations count in full: when there are so many,
	// all are halved, so that a page may change its ways.
	maxObservations = 16
	// maxIntervalGrowth bounds how fast the rest of a page grows: it may be so many times
	// what lay between its last visits.
	maxIntervalGrowth = 2
)

// A PageObservation is what a visit saw of a page.
type PageObservation struct {
	At           time.Time // end of the visit
	Status       int
	ETag         string // validators, as they came
	LastModified string
	Hash         uint64 // of what the page is; 0 if that is not known
}

// isMissing reports whether nothing was there.
func (s PageObservation) isMissing() bool {
	return s.Status == http.StatusNotFound || s.Status == http.StatusGone
}

// differsFrom reports whether the page is another than at the visit that left
// before. Where both know what the page was, validators do not matter: servers
// make new ones for old pages. Where nothing can be compared, it does not.
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

// IsEnabled reports whether pages are visited again at all.
func (r RevisitPolicy) IsEnabled() bool { return r.Mode != NoRevisit }

// A RevisitPlan is what follows from a visit to a page for the next one.
type RevisitPlan struct {
	Summary storage.VisitHistorySummary // what the visit leaves of the page
	Delay   time.Duration               // from the end of the visit to the next one
	GiveUp  bool                        // nothing was there so often in a row that there is no next one
	// IsComparable says that there was a visit before, and that the page is still there; Changed,
	// that it is another than it was then, as far as that can be told.
	IsComparable, Changed bool
}

// Plan returns what follows from a visit. before is what the visit before has left, nil if there
// was none.
func (r RevisitPolicy) Plan(before *storage.VisitHistorySummary, s PageObservation) (p RevisitPlan) {
	p.Summary, p.Delay = r.summaryAndDelay(before, s)
	p.GiveUp = p.Summary.ConsecutiveMissing >= maxConsecutiveMissing
	p.IsComparable = before != nil && !s.isMissing()
	p.Changed = p.IsComparable && s.differsFrom(*before)
	return p
}

// summaryAndDelay returns what a visit leaves of a page, and how long the page rests
// then. before is what the visit before has left, nil if there was none. A page
// that is missing is asked for ever less often; what is known of its changes
// stays, but its validators do not: what comes back is wanted whole.
func (r RevisitPolicy) summaryAndDelay(before *storage.VisitHistorySummary, s PageObservation) (storage.VisitHistorySummary, time.Duration) {
	if before == nil {
		before = &storage.VisitHistorySummary{}
	}
	p := *before
	p.VisitedAt, p.Status, p.SitemapLastmod = s.At, s.Status, time.Time{}
	if s.isMissing() {
		p.ETag, p.LastModified = "", ""
		p.ConsecutiveMissing++
		return p, r.clampInterval(r.DelayAfterFailure(p) << min(max(p.ConsecutiveMissing, 0), maxConsecutiveMissing))
	}
	p.ConsecutiveMissing = 0
	if s.Status != http.StatusNotModified {
		p.ETag, p.LastModified, p.BodyHash = s.ETag, s.LastModified, s.Hash
	} else if s.ETag != "" {
		p.ETag = s.ETag
	}
	if before.VisitedAt.IsZero() {
		return p, r.DelayAfterFailure(p)
	}
	elapsed := max(s.At.Sub(before.VisitedAt), 0)
	addVisitComparison(&p, elapsed, s.differsFrom(*before))
	return p, r.interval(p, elapsed)
}

// DelayAfterFailure returns how long a page rests after a visit that saw nothing of it.
func (r RevisitPolicy) DelayAfterFailure(p storage.VisitHistorySummary) time.Duration {
	return r.interval(p, 0)
}

// addVisitComparison adds a comparison of two visits, with elapsed between them.
func addVisitComparison(p *storage.VisitHistorySummary, elapsed time.Duration, changed bool) {
	p.ComparedVisits++
	p.TotalComparedInterval += elapsed
	if changed {
		p.ChangedVisits++
	}
	if p.ComparedVisits >= maxObservations {
		p.ComparedVisits, p.ChangedVisits, p.TotalComparedInterval = p.ComparedVisits/2, p.ChangedVisits/2, p.TotalComparedInterval/2
	}
}

// interval returns how long a page rests, the time since its last visit but one
// being elapsed.
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

// changesPerVisit estimates how many times a page changes between two visits, on
// average: 0 if it never was found changed.
func changesPerVisit(p storage.VisitHistorySummary) float64 {
	n, x := float64(p.ComparedVisits), float64(min(max(p.ChangedVisits, 0), p.ComparedVisits))
	return math.Log((n + 0.5) / (n - x + 0.5))
}

// clampInterval keeps a rest within the plan's bounds, if it has any.
func (r RevisitPolicy) clampInterval(d time.Duration) time.Duration {
	if r.Mode != AdaptiveRevisit {
		return max(d, r.Interval)
	}
	return min(max(d, r.MinInterval), r.MaxInterval)
}
