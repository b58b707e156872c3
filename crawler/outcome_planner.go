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

// An outcomePlanner decides what becomes of a URL after its visit: whether it is done, visited
// again, or given up.
type outcomePlanner struct {
	policy              politeness.Policy
	settings            Settings
	notes               storage.Notes
	content             *contentAnalyzer
	counters            *counters
	onRetryScheduled    func(*Visit, FailureClass) // nil: nobody looks on
	now                 func() time.Time
	lastmodAccuracyLock *lastmodAccuracyLock
}

// doneOrRevisit ends a visit that was answered: the page is done, as is all that is not
// asked for by GET, or rests until its
// revisit, or has been missing so often that it is given up.
func (o outcomePlanner) doneOrRevisit(ctx context.Context, v *Visit) (leaseOutcome, error) {
	policy := o.settings.Revisit
	if !policy.IsEnabled() || v.Lease.Request != nil {
		return leaseOutcome{outcome: storage.Done}, nil
	}
	plan := policy.Plan(v.Lease.VisitHistorySummary, pageObservation(v))
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

// recordRevisitResult counts a visit to a page that had been visited before, and what a
// sitemap said of it.
func (o outcomePlanner) recordRevisitResult(ctx context.Context, v *Visit, changed bool) error {
	if !changed {
		o.counters.count(func(s *Stats) { s.Unchanged++ })
	}
	if v.Lease.VisitHistorySummary.SitemapLastmod.IsZero() {
		return nil
	}
	return o.updateOriginLastmodAccuracy(ctx, v.Lease.URL.Origin(), changed)
}

// revisitResult returns the result of a page that is visited again after d.
func revisitResult(v *Visit, page storage.VisitHistorySummary, d time.Duration) leaseOutcome {
	return leaseOutcome{outcome: storage.RevisitAt, notBefore: v.End.Add(d), history: &page}
}

// pageObservation returns what v saw of its page. What a redirect is, is where it leads;
// of an error only the status counts: such pages tend to carry the time of day.
func pageObservation(v *Visit) frontier.PageObservation {
	res := v.Response
	s := frontier.PageObservation{At: v.End, Status: res.Status}
	to, redirects := res.Location()
	switch {
	case redirects:
		s.Hash = hashPrefix(sha256.Sum256([]byte(to.String())))
	case v.OK() || res.Status == http.StatusNotModified:
		if v.ContentUsageAssessment().PurposeConflict == nil { // or it would not be had whole when it may be used
			s.ETag, s.LastModified = storableValidator(res, "ETag"), storableValidator(res, "Last-Modified")
		}
		if v.BodyLen() > 0 || !res.BodyLimitExceeded {
			s.Hash = hashPrefix(v.BodySHA256())
		}
	default:
		s.Hash = hashPrefix(sha256.Sum256([]byte(strconv.Itoa(res.Status))))
	}
	return s
}

// hashPrefix returns the beginning of a hash. It is never 0, which says that none is
// known.
func hashPrefix(sum [sha256.Size]byte) uint64 { return max(binary.BigEndian.Uint64(sum[:]), 1) }

// storableValidator returns a header as it came; empty if it is too long to be kept, or
// could not be sent back.
func storableValidator(res *decorum.Response, name string) string {
	value := res.Header.Get(name)
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	if len(value) > storage.MaxValidatorBytes || strings.ContainsFunc(value, control) {
		return ""
	}
	return value
}

// robotsRefreshInterval is how often the robots.txt of an origin is looked at for the
// URLs that it closes.
const robotsRefreshInterval = 24 * time.Hour

// robotsRefreshResult has the origin looked at again the next day, if the crawl goes on for so long.
func (o outcomePlanner) robotsRefreshResult() leaseOutcome {
	if !o.settings.Revisit.IsEnabled() {
		return leaseOutcome{outcome: storage.Done}
	}
	return leaseOutcome{outcome: storage.RevisitAt, notBefore: o.now().Add(robotsRefreshInterval)}
}

// retryOrGiveUp asks for the page of v again after d, until it has failed too often. What
// must not be sent twice is not asked for again.
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

// dropOrRevisit ends the attempts at a page. One that was there before rests until
// its next revisit.
func (o outcomePlanner) dropOrRevisit(v *Visit) leaseOutcome {
	o.counters.count(func(s *Stats) { s.GivenUp++ })
	if page := v.Lease.VisitHistorySummary; page != nil && o.settings.Revisit.IsEnabled() {
		return revisitResult(v, *page, o.settings.Revisit.DelayAfterFailure(*page))
	}
	return leaseOutcome{outcome: storage.Drop}
}

// failureResult returns what becomes of a page or sitemap that could not be had, and
// false if it could. What we refuse to ask for ourselves is not asked for again.
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
