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

// lastmodNote names an origin's note that says how accurate the dates were that sitemaps gave for
// its pages: an encoded lastmodAccuracy of two bytes.
const lastmodNote = "lastmod"

// A lastmodAccuracy is the results of the last claims of sitemaps that a page of an origin was
// modified since its last visit. The visit that followed each claim checked it.
//
// Each reading of a sitemap may reschedule a number of the origin's pages: three while fewer than
// three results are known; one, as a probe, while more than half of the results are wrong; all
// otherwise. So trust returns as slowly as sitemaps are read: if the last eight claims were wrong,
// it takes four correct probes in a row.
type lastmodAccuracy struct {
	claimCount  uint8 // number of known results, at most 8
	correctBits uint8 // one bit for each result, the latest lowest; 1 is correct
}

// Bounds of the results: how many are kept, and how many are needed before they count.
const maxClaims, minClaims = 8, 3

// decodeLastmodAccuracy decodes a lastmodNote. It returns the zero value for an invalid one.
func decodeLastmodAccuracy(note []byte) lastmodAccuracy {
	if len(note) != 2 || note[0] > maxClaims {
		return lastmodAccuracy{}
	}
	return lastmodAccuracy{note[0], note[1]}
}

// encode returns the value of the lastmodNote.
func (r lastmodAccuracy) encode() []byte { return []byte{r.claimCount, r.correctBits} }

// withClaim returns the record with one more result.
func (r lastmodAccuracy) withClaim(correct bool) lastmodAccuracy {
	r.correctBits <<= 1
	if correct {
		r.correctBits |= 1
	}
	r.claimCount = min(r.claimCount+1, maxClaims)
	return r
}

// maxReschedulesPerSitemap returns how many pages of the origin one reading of a sitemap may
// reschedule.
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

// A lastmodAccuracyLock serialises the updates of lastmodNotes: reading a note, and writing its
// successor.
type lastmodAccuracyLock struct{ mu sync.Mutex } // guards the lastmodNote of every origin

// updateOriginLastmodAccuracy adds a result to the origin's record: whether a page that a sitemap
// claimed to be modified had changed.
func (o outcomePlanner) updateOriginLastmodAccuracy(ctx context.Context, origin decorum.Origin, changed bool) error {
	o.lastmodAccuracyLock.mu.Lock()
	defer o.lastmodAccuracyLock.mu.Unlock()
	note, err := o.notes.ReadNote(ctx, origin, lastmodNote)
	if err != nil {
		return err
	}
	return o.notes.SetNote(ctx, origin, lastmodNote, decodeLastmodAccuracy(note).withClaim(changed).encode())
}

// A sitemapLastmodSummary summarises the dates that a sitemap gives for its pages, or an index for
// its sitemaps.
type sitemapLastmodSummary struct {
	count            int
	earliest, latest time.Time
}

// addEntries adds the dates of listed. Entries without a date are ignored.
func (l *sitemapLastmodSummary) addEntries(listed []sitemap.Entry) {
	for _, e := range listed {
		if e.LastMod.IsZero() {
			continue
		}
		l.earliest, l.latest = timecmp.EarlierOfSet(l.earliest, e.LastMod), timecmp.Later(l.latest, e.LastMod)
		l.count++
	}
}

// hasCredibleDates reports whether there are dates, and they mean anything. They do not if the
// sitemap claims that all its pages, three or more, were modified just now: within the hour, or all at the same time
// within a day. Then the dates say when the sitemap was generated.
func (l *sitemapLastmodSummary) hasCredibleDates(now time.Time) bool {
	isRecent := !l.earliest.Before(now.Add(-time.Hour)) ||
		l.earliest.Equal(l.latest) && !l.earliest.Before(now.Add(-24*time.Hour))
	return l.count > 0 && (l.count < 3 || !isRecent)
}

// rescheduleModifiedPages makes pages due at once that the sitemap claims were modified after their
// last visit, as far as the accuracy of their origins allows.
func (p *prerequisites) rescheduleModifiedPages(ctx context.Context, sitemapReader *sitemapReader) error {
	r := lastmodRescheduler{prerequisites: p, sitemapVisitEnd: sitemapReader.visit.End,
		remainingQuotaByOrigin: map[decorum.Origin]int{}}
	failed, _ := sitemapReader.eachBatch(func(listed []sitemap.Entry) error {
		return r.rescheduleModifiedPages(ctx, listed)
	})
	return failed
}

// A lastmodRescheduler counts how many pages of each origin a sitemap may still reschedule.
type lastmodRescheduler struct {
	prerequisites          *prerequisites
	sitemapVisitEnd        time.Time
	remainingQuotaByOrigin map[decorum.Origin]int
}

// rescheduleModifiedPages reschedules those of the listed pages whose date is not in the future.
func (r *lastmodRescheduler) rescheduleModifiedPages(ctx context.Context, listed []sitemap.Entry) error {
	// Pages of trusted origins are offered in one batch. Pages of others are offered one by one,
	// because most may be new or unmodified and then use up no quota.
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

// remainingReschedules returns how many pages of o may still be rescheduled.
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

// reschedule makes those of pages due that were visited before they were modified, and counts them.
func (r *lastmodRescheduler) reschedule(ctx context.Context,
	pages ...storage.SitemapLastmod) (rescheduled int, err error) {
	rescheduled, err = r.prerequisites.frontier.RescheduleByLastmod(ctx, pages...)
	r.prerequisites.counters.count(func(s *Stats) { s.RescheduledBySitemap += int64(rescheduled) })
	return rescheduled, err
}
