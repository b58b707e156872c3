package crawler

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// An outcomePlanner decides what becomes of a URL after its visit: done, visited again, or given
// up.
type outcomePlanner struct {
	policy              politeness.Policy
	settings            Settings
	notes               storage.Notes
	content             *contentAnalyzer
	counters            *counters
	onRetryScheduled    func(*Visit, FailureClass) // nil: not called
	now                 func() time.Time
	lastmodAccuracyLock *lastmodAccuracyLock
}

// doneOrRevisit ends a visit that was answered. The page is done, waits for its revisit, or is
// given up because it has been missing too often. A URL with another method than GET is always
// done.
func (o outcomePlanner) doneOrRevisit(ctx context.Context, v *Visit) (leaseOutcome, error) {
	policy := o.settings.Revisit
	if !policy.IsEnabled() || v.Lease.Request != nil {
		return leaseOutcome{outcome: storage.Done}, nil
	}
	observed := pageObservation(v)
	if limit := policy.SitemapFreshnessLimit(); observed.FreshFor > limit && mayListPages(v, limit) {
		observed.FreshFor = limit
	}
	plan := policy.Plan(v.Lease.VisitHistorySummary, observed)
	if plan.IsComparable {
		if err := o.recordRevisitResult(ctx, v, plan.Changed); err != nil {
			return leaseOutcome{outcome: storage.Requeue}, err
		}
	}
	if plan.GiveUp {
		return leaseOutcome{outcome: storage.Drop}, nil
	}
	return revisitResult(v, plan.Summary, plan.Delay), nil
}

// recordRevisitResult counts a revisit, and records whether a sitemap was right about the page.
func (o outcomePlanner) recordRevisitResult(ctx context.Context, v *Visit, changed bool) error {
	if !changed {
		o.counters.count(func(s *Stats) { s.Unchanged++ })
	}
	if v.Lease.VisitHistorySummary.SitemapLastmod.IsZero() {
		return nil
	}
	return o.updateOriginLastmodAccuracy(ctx, v.Lease.URL.Origin(), changed)
}

// revisitResult returns the outcome of a page that is visited again after d.
func revisitResult(v *Visit, page storage.VisitHistorySummary, d time.Duration) leaseOutcome {
	return leaseOutcome{outcome: storage.RevisitAt, notBefore: v.End.Add(d), history: &page}
}

// pageObservation returns what v observed of its page. A redirect is identified by its target, an
// error by its status alone, because error pages often contain the time of day.
func pageObservation(v *Visit) frontier.PageObservation {
	res := v.Response
	s := frontier.PageObservation{At: v.End, Status: res.Status, EncodedBodyLen: v.encodedBodyLen()}
	to, redirects := res.Location()
	switch {
	case redirects:
		s.Hash = hashPrefix(sha256.Sum256([]byte(to.String())))
	case v.OK() || res.Status == http.StatusNotModified:
		// Validators of withheld content would keep the crawl from getting it once it may be used.
		if v.ContentUsageAssessment().PurposeConflict == nil {
			s.ETag, s.LastModified = storableETag(res), storableValidator(res, "Last-Modified")
		}
		if v.BodyLen() > 0 || !res.BodyLimitExceeded {
			s.Hash = hashPrefix(v.BodySHA256())
		}
	default:
		s.Hash = hashPrefix(sha256.Sum256([]byte(strconv.Itoa(res.Status))))
	}
	applyCacheRules(&s, v)
	return s
}

// hashPrefix returns the beginning of a hash, but never 0, which means that no hash is known.
func hashPrefix(sum [sha256.Size]byte) uint64 { return max(binary.BigEndian.Uint64(sum[:]), 1) }

// storableETag is storableValidator for the ETag. It returns no value with a * outside of quotes: If-None-Match
// would then stand for every version of the page, and its changes would never be seen.
func storableETag(res *decorum.Response) string {
	etag := storableValidator(res, "ETag")
	for i, part := range strings.Split(etag, `"`) {
		if i%2 == 0 && strings.Contains(part, "*") {
			return ""
		}
	}
	return etag
}

// storableValidator returns a header unchanged; empty if it is too long to store, or contains
// control characters and could not be sent back.
func storableValidator(res *decorum.Response, name string) string {
	value := res.Header.Get(name)
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	if len(value) > storage.MaxValidatorBytes || strings.ContainsFunc(value, control) {
		return ""
	}
	return value
}

// robotsRefreshInterval is how often the crawl checks the robots.txt of an origin for the URLs that
// it disallows.
const robotsRefreshInterval = 24 * time.Hour

// robotsRefreshResult schedules the next check of the origin, if the crawl revisits pages.
func (o outcomePlanner) robotsRefreshResult() leaseOutcome {
	if !o.settings.Revisit.IsEnabled() {
		return leaseOutcome{outcome: storage.Done}
	}
	return leaseOutcome{outcome: storage.RevisitAt, notBefore: o.now().Add(robotsRefreshInterval)}
}

// retryOrGiveUp schedules another visit to the page of v after d, unless it has failed too often or
// its request must not be sent twice.
func (o outcomePlanner) retryOrGiveUp(v *Visit, f FailureClass, d time.Duration) leaseOutcome {
	o.counters.count(func(s *Stats) { s.Failures[f]++ })
	if v.unsafeSendRecorded || v.Lease.FailedAttempts+1 >= f.maxAttempts(o.settings.MaxAttempts) {
		return o.dropOrRevisit(v)
	}
	o.counters.count(func(s *Stats) { s.Retries++ })
	if o.onRetryScheduled != nil {
		o.onRetryScheduled(o.content.visitWithoutWithheldContent(v), f)
	}
	return leaseOutcome{outcome: storage.RetryAt, notBefore: v.End.Add(d)}
}

// dropOrRevisit ends the attempts at a page. A page known from before waits for its next revisit.
func (o outcomePlanner) dropOrRevisit(v *Visit) leaseOutcome {
	o.counters.count(func(s *Stats) { s.GivenUp++ })
	if page := v.Lease.VisitHistorySummary; page != nil && o.settings.Revisit.IsEnabled() {
		return revisitResult(v, *page, o.settings.Revisit.DelayAfterFailure(*page))
	}
	return leaseOutcome{outcome: storage.Drop}
}

// failureResult returns the outcome of a visit to a page or sitemap that failed, and false if it
// did not fail. A request that this side refused is not retried.
func (o outcomePlanner) failureResult(v *Visit) (leaseOutcome, bool) {
	if v.wasNeverSent() {
		return o.dropOrRevisit(v), true
	}
	f, failed := visitFailureClass(v)
	if !failed {
		return leaseOutcome{}, false
	}
	return o.retryOrGiveUp(v, f, o.policy.RetryDelay(v.URL().String(), v.Lease.FailedAttempts+1)), true
}
