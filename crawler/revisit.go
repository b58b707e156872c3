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
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// settle ends a visit that was answered: the page is done, as is all that is not
// asked for by GET, or rests until its
// revisit, or has been missing so often that it is given up.
func (c *Crawler) settle(ctx context.Context, v *Visit) (storage.Ack, error) {
	plan := c.Settings.Revisit
	if !plan.Wanted() || v.Lease.Request != nil {
		return storage.Ack{Outcome: storage.Done}, nil
	}
	before, seen := v.Lease.Page, sight(v)
	if before != nil && !seen.Missing() {
		if err := c.compare(ctx, v, seen.Differs(*before)); err != nil {
			return storage.Ack{Outcome: storage.Again}, err
		}
	}
	page, rest := plan.After(before, seen)
	if page.Missing >= frontier.MaxMissing {
		return storage.Ack{Outcome: storage.Gone}, nil
	}
	return resting(v, page, rest), nil
}

// compare counts a visit to a page that had been visited before, and what a
// sitemap said of it.
func (c *Crawler) compare(ctx context.Context, v *Visit, changed bool) error {
	if !changed {
		c.tally.unchanged.Add(1)
	}
	if v.Lease.Page.Listed.IsZero() {
		return nil
	}
	return c.recordLastmodClaim(ctx, v.Lease.URL.Origin(), changed)
}

// resting returns the ack of a page that is visited again after d.
func resting(v *Visit, page storage.Page, d time.Duration) storage.Ack {
	return storage.Ack{Outcome: storage.Rest, At: v.End.Add(d), Lease: storage.Lease{Entry: storage.Entry{Page: &page}}}
}

// handBack returns the lease as its ack gives it back to the store: as it was,
// but for what follows from the outcome; or as the ack has it, if it has it.
func handBack(l storage.Lease, ack storage.Ack) storage.Lease {
	if !ack.Lease.URL.IsZero() {
		return ack.Lease
	}
	switch ack.Outcome {
	case storage.Later:
		l.Attempt++
	case storage.Rest:
		l.Attempt, l.Page = 0, ack.Lease.Page
		if l.Source != storage.Robots && !isFeed(l) {
			l.Source = storage.Revisit
		}
	}
	if ack.Lease.AsFound {
		l.Found, l.AsFound, l.Page = ack.Lease.Found, true, nil // what was left there says nothing of another URL
	}
	return l
}

// sight returns what v saw of its page. What a redirect is, is where it leads;
// of an error only the status counts: such pages tend to carry the time of day.
func sight(v *Visit) frontier.Sight {
	res := v.Response
	s := frontier.Sight{At: v.End, Status: res.Status}
	to, redirects := res.Location()
	switch {
	case redirects:
		s.Hash = brief(sha256.Sum256([]byte(to.String())))
	case v.OK() || res.Status == http.StatusNotModified:
		if v.UsagePolicy().Refused == nil { // or it would not be had whole when it may be used
			s.ETag, s.LastModified = validator(res, "ETag"), validator(res, "Last-Modified")
		}
		if v.Bytes() > 0 || !res.Truncated {
			s.Hash = brief(v.BodySHA256())
		}
	default:
		s.Hash = brief(sha256.Sum256([]byte(strconv.Itoa(res.Status))))
	}
	return s
}

// brief returns the beginning of a hash. It is never 0, which says that none is
// known.
func brief(sum [sha256.Size]byte) uint64 { return max(binary.BigEndian.Uint64(sum[:]), 1) }

// validator returns a header as it came; empty if it is too long to be kept, or
// could not be sent back.
func validator(res *decorum.Response, name string) string {
	value := res.Header.Get(name)
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	if len(value) > storage.MaxValidator || strings.ContainsFunc(value, control) {
		return ""
	}
	return value
}

// condition puts the validators of the page's last visit on the ticket.
// robots.txt is always asked for whole.
func condition(t Ticket, l storage.Lease, cl robots.Clearance) {
	if l.Page != nil && l.Request == nil && !cl.ForRobots() && !isDetour(l, cl) {
		t.stub.etag, t.stub.modified = l.Page.ETag, l.Page.LastModified
	}
}

// watchEvery is how often the robots.txt of an origin is looked at for the
// URLs that it closes.
const watchEvery = 24 * time.Hour

// watch makes sure that the origin's robots.txt is read again as time goes by,
// though it should close every URL of the origin: an errand to the robots.txt
// itself, which is never made. The gate is asked about it, has the file fetched
// if it is old, and what it says is heeded.
func watch(o decorum.Origin) storage.Entry {
	return storage.Entry{URL: o.RobotsURL(), Source: storage.Robots, Class: storage.Late, Referrer: o.RobotsURL().String()}
}

// isWatch reports whether l is such an errand.
func isWatch(l storage.Lease) bool {
	return l.For.IsZero() && l.Source == storage.Robots && l.URL == l.URL.Origin().RobotsURL()
}

// watched ends the errand until the next time.
func (c *Crawler) watched() storage.Ack {
	if !c.Settings.Revisit.Wanted() {
		return storage.Ack{Outcome: storage.Done}
	}
	return storage.Ack{Outcome: storage.Rest, At: c.now().Add(watchEvery)}
}
