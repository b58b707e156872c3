package crawler

import (
	"context"
	"math"
	"math/bits"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier/sitemap"
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/storage"
)

// lastmodNote is the note of an origin that says how true the dates were that
// sitemaps gave for its pages: the claims of a record, in two bytes.
const lastmodNote = "lastmod"

// A lastmodAccuracy is what became of the last claims that sitemaps made of an origin's
// pages: that they were modified since they were visited. Each was checked by
// the visit that followed from it.
//
// Each time that a sitemap is read, an origin has so many of its pages recalled
// as it has earned: three while no three claims are known, then all, but only
// one, as a probe, while more than half of the last claims were false. So trust
// comes back as slowly as sitemaps are read: after all of the last eight claims
// were false, with the fourth probe in a row that finds its page changed.
type lastmodAccuracy struct {
	claimCount  uint8 // how many claims are known, at most 8
	correctBits uint8 // one bit each, the latest lowest
}

const maxClaims, minClaims = 8, 3

func decodeLastmodAccuracy(note []byte) lastmodAccuracy {
	if len(note) != 2 || note[0] > maxClaims {
		return lastmodAccuracy{}
	}
	return lastmodAccuracy{note[0], note[1]}
}

func (r lastmodAccuracy) encode() []byte { return []byte{r.claimCount, r.correctBits} }

// withClaim returns the record with one claim more.
func (r lastmodAccuracy) withClaim(correct bool) lastmodAccuracy {
	r.correctBits <<= 1
	if correct {
		r.correctBits |= 1
	}
	r.claimCount = min(r.claimCount+1, maxClaims)
	return r
}

// maxReschedulesPerSitemap returns how many pages one reading of a sitemap may recall.
func (r lastmodAccuracy) maxReschedulesPerSitemap() int {
	known := r.correctBits & (1<<r.claimCount - 1)
	wrong := int(r.claimCount) - bits.OnesCount8(known)
	switch {
	case r.claimCount < minClaims:
		return minClaims
	case 2*wrong > int(r.claimCount):
		return 1
	}
	return math.MaxInt
}

// lastmodAccuracyLock guards the records: they are read and written by many workers.
type lastmodAccuracyLock struct{ mu sync.Mutex }

// updateOriginLastmodAccuracy adds to the record of an origin that a page, of which a sitemap had
// said so, was changed, or was not.
func (o outcomePlanner) updateOriginLastmodAccuracy(ctx context.Context, origin decorum.Origin, changed bool) error {
	o.lastmodAccuracyLock.mu.Lock()
	defer o.lastmodAccuracyLock.mu.Unlock()
	note, err := o.notes.ReadNote(ctx, origin, lastmodNote)
	if err != nil {
		return err
	}
	return o.notes.SetNote(ctx, origin, lastmodNote, decodeLastmodAccuracy(note).withClaim(changed).encode())
}

// sitemapLastmodSummary is the dates that a sitemap gives for its pages, or an index for its
// sitemaps, taken together.
type sitemapLastmodSummary struct {
	count            int
	earliest, latest time.Time
}

func (l *sitemapLastmodSummary) addEntries(listed []sitemap.Entry) {
	for _, e := range listed {
		if e.LastMod.IsZero() {
			continue
		}
		l.earliest, l.latest = timecmp.EarlierOfSet(l.earliest, e.LastMod), timecmp.Later(l.latest, e.LastMod)
		l.count++
	}
}

// hasCredibleDates reports whether the dates mean anything: not, if the sitemap says of all
// its pages, three or more, that they were modified just now. Then it gives the
// time at which it was made itself: within the hour, or, in whole days, today.
func (l *sitemapLastmodSummary) hasCredibleDates(now time.Time) bool {
	isRecent := !l.earliest.Before(now.Add(-time.Hour)) || l.earliest.Equal(l.latest) && !l.earliest.Before(now.Add(-24*time.Hour))
	return l.count > 0 && (l.count < 3 || !isRecent)
}

// rescheduleModifiedPages makes pages due at once that were visited before they were
// modified, as the sitemap says, as far as their origins are trusted.
func (p *prerequisites) rescheduleModifiedPages(ctx context.Context, sitemapReader *sitemapReader) error {
	r := lastmodRescheduler{prerequisites: p, sitemapVisitEnd: sitemapReader.visit.End, remainingQuotaByOrigin: map[decorum.Origin]int{}}
	failed, _ := sitemapReader.eachBatch(func(listed []sitemap.Entry) error { return r.rescheduleModifiedPages(ctx, listed) })
	return failed
}

// A lastmodRescheduler knows how many pages of each origin a sitemap may still reschedule.
type lastmodRescheduler struct {
	prerequisites          *prerequisites
	sitemapVisitEnd        time.Time
	remainingQuotaByOrigin map[decorum.Origin]int
}

// rescheduleModifiedPages recalls those of the listed pages that have a date which is not in the
// future. Where few may be recalled, they are offered one by one: most may be
// new, or not modified since they were visited.
func (r *lastmodRescheduler) rescheduleModifiedPages(ctx context.Context, listed []sitemap.Entry) error {
	pages := make([]storage.SitemapLastmod, 0, len(listed))
	for _, e := range listed {
		if e.LastMod.IsZero() || e.LastMod.After(r.sitemapVisitEnd) {
			continue
		}
		s, o := storage.SitemapLastmod{URL: e.URL, Modified: e.LastMod}, e.URL.Origin()
		remaining, err := r.remainingReschedules(ctx, o)
		switch {
		case err != nil:
			return err
		case remaining == math.MaxInt:
			pages = append(pages, s)
		case remaining > 0:
			rescheduled, err := r.reschedule(ctx, s)
			if err != nil {
				return err
			}
			r.remainingQuotaByOrigin[o] -= rescheduled
		}
	}
	_, err := r.reschedule(ctx, pages...)
	return err
}

// remainingReschedules returns how many pages of an origin may still be recalled.
func (r *lastmodRescheduler) remainingReschedules(ctx context.Context, o decorum.Origin) (int, error) {
	if remaining, known := r.remainingQuotaByOrigin[o]; known {
		return remaining, nil
	}
	note, err := r.prerequisites.frontier.Store().ReadNote(ctx, o, lastmodNote)
	if err != nil {
		return 0, err
	}
	r.remainingQuotaByOrigin[o] = decodeLastmodAccuracy(note).maxReschedulesPerSitemap()
	return r.remainingQuotaByOrigin[o], nil
}

func (r *lastmodRescheduler) reschedule(ctx context.Context, pages ...storage.SitemapLastmod) (rescheduled int, err error) {
	rescheduled, err = r.prerequisites.frontier.RescheduleByLastmod(ctx, pages...)
	r.prerequisites.counters.count(func(s *Stats) { s.RescheduledBySitemap += int64(rescheduled) })
	return rescheduled, err
}
