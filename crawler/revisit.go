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
	"github.com/decorum-crawler/decorum/storage"
)

// doneOrRevisitAck ends a visit that was answered: the page is done, as is all that is not
// asked for by GET, or rests until its
// revisit, or has been missing so often that it is given up.
func (c *Crawler) doneOrRevisitAck(ctx context.Context, v *Visit) (storage.Ack, error) {
	policy := c.Settings.Revisit
	if !policy.IsEnabled() || v.Lease.Request != nil {
		return storage.Ack{Outcome: storage.Done}, nil
	}
	plan := policy.Plan(v.Lease.VisitHistorySummary, pageObservation(v))
	if plan.IsComparable {
		if err := c.recordRevisitResult(ctx, v, plan.Changed); err != nil {
			return storage.Ack{Outcome: storage.Requeue}, err
		}
	}
	if plan.GiveUp {
		return storage.Ack{Outcome: storage.Drop}, nil
	}
	return revisitAck(v, plan.Summary, plan.Delay), nil
}

// recordRevisitResult counts a visit to a page that had been visited before, and what a
// sitemap said of it.
func (c *Crawler) recordRevisitResult(ctx context.Context, v *Visit, changed bool) error {
	if !changed {
		c.counters.count(func(s *Stats) { s.Unchanged++ })
	}
	if v.Lease.VisitHistorySummary.SitemapLastmod.IsZero() {
		return nil
	}
	return c.updateOriginLastmodAccuracy(ctx, v.Lease.URL.Origin(), changed)
}

// revisitAck returns the ack of a page that is visited again after d.
func revisitAck(v *Visit, page storage.VisitHistorySummary, d time.Duration) storage.Ack {
	return storage.Ack{Outcome: storage.RevisitAt, NotBefore: v.End.Add(d), Lease: storage.Lease{Entry: storage.Entry{VisitHistorySummary: &page}}}
}

// leaseAfterAck returns the lease as its ack gives it back to the store: as it was,
// but for what follows from the outcome; or as the ack has it, if it has it.
func leaseAfterAck(l storage.Lease, ack storage.Ack) storage.Lease {
	if !ack.Lease.URL.IsZero() {
		return ack.Lease
	}
	switch ack.Outcome {
	case storage.RetryAt:
		l.FailedAttempts++
	case storage.RevisitAt:
		l.FailedAttempts, l.VisitHistorySummary = 0, ack.Lease.VisitHistorySummary
		if l.Source != storage.SourcePrerequisite && !isAnnouncedFeed(l) {
			l.Source = storage.SourceRevisit
		}
	}
	if ack.Lease.UseUncleanedURL {
		l.UncleanedURL, l.UseUncleanedURL, l.VisitHistorySummary = ack.Lease.UncleanedURL, true, nil // what was left there says nothing of another URL
	}
	return l
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

// robotsRefreshAck ends the errand until the next time.
func (c *Crawler) robotsRefreshAck() storage.Ack {
	if !c.Settings.Revisit.IsEnabled() {
		return storage.Ack{Outcome: storage.Done}
	}
	return storage.Ack{Outcome: storage.RevisitAt, NotBefore: c.now().Add(robotsRefreshInterval)}
}
