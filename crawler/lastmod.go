package crawler

import (
	"context"
	"math"
	"math/bits"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier/sitemap"
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
	count uint8 // how many claims are known, at most 8
	right uint8 // one bit each, the latest lowest
}

const maxClaims, minClaims = 8, 3

func decodeLastmodAccuracy(note []byte) lastmodAccuracy {
	if len(note) != 2 || note[0] > maxClaims {
		return lastmodAccuracy{}
	}
	return lastmodAccuracy{note[0], note[1]}
}

func (r lastmodAccuracy) bytes() []byte { return []byte{r.count, r.right} }

// with returns the record with one claim more.
func (r lastmodAccuracy) with(right bool) lastmodAccuracy {
	r.right <<= 1
	if right {
		r.right |= 1
	}
	r.count = min(r.count+1, maxClaims)
	return r
}

// allowance returns how many pages one reading of a sitemap may recall.
func (r lastmodAccuracy) allowance() int {
	known := r.right & (1<<r.count - 1)
	wrong := int(r.count) - bits.OnesCount8(known)
	switch {
	case r.count < minClaims:
		return minClaims
	case 2*wrong > int(r.count):
		return 1
	}
	return math.MaxInt
}

// claims guards the records: they are read and written by many workers.
type claims struct{ mu sync.Mutex }

// recordLastmodClaim adds to the record of an origin that a page, of which a sitemap had
// said so, was changed, or was not.
func (c *Crawler) recordLastmodClaim(ctx context.Context, o decorum.Origin, changed bool) error {
	c.claims.mu.Lock()
	defer c.claims.mu.Unlock()
	note, err := c.Frontier.ReadNote(ctx, o, lastmodNote)
	if err != nil {
		return err
	}
	return c.Frontier.SetNote(ctx, o, lastmodNote, decodeLastmodAccuracy(note).with(changed).bytes())
}

// lastmods is the dates that a sitemap gives for its pages, or an index for its
// sitemaps, taken together.
type lastmods struct {
	count       int
	first, last time.Time
}

func (l *lastmods) add(listed []sitemap.Entry) {
	for _, e := range listed {
		if e.LastMod.IsZero() {
			continue
		}
		if l.count == 0 || e.LastMod.Before(l.first) {
			l.first = e.LastMod
		}
		if e.LastMod.After(l.last) {
			l.last = e.LastMod
		}
		l.count++
	}
}

// mean reports whether the dates mean anything: not, if the sitemap says of all
// its pages, three or more, that they were modified just now. Then it gives the
// time at which it was made itself: within the hour, or, in whole days, today.
func (l *lastmods) mean(now time.Time) bool {
	fresh := !l.first.Before(now.Add(-time.Hour)) || l.first.Equal(l.last) && !l.first.Before(now.Add(-24*time.Hour))
	return l.count > 0 && (l.count < 3 || !fresh)
}

// recallListed makes pages due at once that were visited before they were
// modified, as the sitemap says, as far as their origins are trusted.
func (c *Crawler) recallListed(ctx context.Context, list *sitemapReader) error {
	r := lastmodReschedule{crawler: c, now: list.visit.End, left: map[decorum.Origin]int{}}
	failed, _ := list.each(func(listed []sitemap.Entry) error { return r.recall(ctx, listed) })
	return failed
}

// A lastmodReschedule of a sitemap knows how many pages of each origin it may still recall.
type lastmodReschedule struct {
	crawler *Crawler
	now     time.Time
	left    map[decorum.Origin]int
}

// recall recalls those of the listed pages that have a date which is not in the
// future. Where few may be recalled, they are offered one by one: most may be
// new, or not modified since they were visited.
func (r *lastmodReschedule) recall(ctx context.Context, listed []sitemap.Entry) error {
	sightings := make([]storage.Sighting, 0, len(listed))
	for _, e := range listed {
		if e.LastMod.IsZero() || e.LastMod.After(r.now) {
			continue
		}
		s, o := storage.Sighting{URL: e.URL, Modified: e.LastMod}, e.URL.Origin()
		left, err := r.allowance(ctx, o)
		switch {
		case err != nil:
			return err
		case left == math.MaxInt:
			sightings = append(sightings, s)
		case left > 0:
			recalled, err := r.send(ctx, s)
			if err != nil {
				return err
			}
			r.left[o] -= recalled
		}
	}
	_, err := r.send(ctx, sightings...)
	return err
}

// allowance returns how many pages of an origin may still be recalled.
func (r *lastmodReschedule) allowance(ctx context.Context, o decorum.Origin) (int, error) {
	if left, known := r.left[o]; known {
		return left, nil
	}
	note, err := r.crawler.Frontier.ReadNote(ctx, o, lastmodNote)
	if err != nil {
		return 0, err
	}
	r.left[o] = decodeLastmodAccuracy(note).allowance()
	return r.left[o], nil
}

func (r *lastmodReschedule) send(ctx context.Context, sightings ...storage.Sighting) (recalled int, err error) {
	recalled, err = r.crawler.Frontier.Recall(ctx, sightings...)
	r.crawler.tally.recalled.Add(int64(recalled))
	return recalled, err
}
