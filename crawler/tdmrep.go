package crawler

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// A Reservation is what is known of an origin's tdmrep.json, which a crawl that
// mines text and data must read before pages (TDM Reservation Protocol, Processing
// priority).
type Reservation struct {
	Body     []byte    `json:"body,omitempty"`     // of the last answer that was a file
	Fetched  time.Time `json:"fetched,omitzero"`   // when the server last answered
	Until    time.Time `json:"until,omitzero"`     // it is not asked again before
	Failures int       `json:"failures,omitempty"` // lookups that failed in a row
	file     *robots.TDMRep

	// grace is until when what was just learnt holds at least until a page has been
	// cleared by it, as of a robots.txt; zero if one was.
	grace time.Time
}

// maxGrace is how long a file at most holds for which no page comes.
const maxGrace = 24 * time.Hour

// holds reports whether the file need not be asked for at now.
func (r *Reservation) holds(now time.Time) bool { return now.Before(r.Until) || now.Before(r.grace) }

// reservationNote is the note, in the frontier's store, that keeps one.
const reservationNote = "tdmrep"

// Notes keep what is known of origins: a storage.Store, or a frontier.Frontier.
type Notes interface {
	ReadNote(ctx context.Context, o decorum.Origin, key string) ([]byte, error)
}

// ReadReservation returns what is known of an origin's tdmrep.json. A note that
// cannot be read is of nothing known: the file is asked for again.
func ReadReservation(ctx context.Context, notes Notes, o decorum.Origin) (*Reservation, error) {
	note, err := notes.ReadNote(ctx, o, reservationNote)
	r := &Reservation{}
	if err != nil || len(note) == 0 || json.Unmarshal(note, r) != nil {
		return &Reservation{}, err
	}
	r.file, _ = robots.ParseTDMRep(r.Body) // what is wrong with it was said when it came
	return r, nil
}

// patience is how many lookups of a tdmrep.json must fail in a row for the origin
// to count as one that has none.
const patience = 3

// retryReservation is how long a server that failed is left alone, then twice as
// long.
const retryReservation = time.Minute

// blocksPages reports whether pages wait for the file: the server failed just now.
func (r *Reservation) blocksPages() bool { return r.Failures > 0 && r.Failures < patience }

// Check judges u by the file, for a crawl of these purposes.
func (r *Reservation) Check(u decorum.URL, purposes []string) robots.Verdict {
	return r.file.Check(u, purposes)
}

// NewVerdictFunc returns how an origin's URLs are judged by its robots.txt, and by what the
// notes keep of its tdmrep.json: as a crawl judges them while these hold. It is nil
// if no rules are known.
func NewVerdictFunc(ctx context.Context, gate *robots.Gate, notes Notes, o decorum.Origin) (func(decorum.URL) robots.Verdict, error) {
	rules, err := gate.VerdictFunc(ctx, o)
	if err != nil || rules == nil || !robots.Mines(gate.Purposes()) {
		return rules, err
	}
	r, err := ReadReservation(ctx, notes, o)
	return func(u decorum.URL) robots.Verdict {
		v := rules(u)
		if no := r.Check(u, gate.Purposes()); v.Allowed && !no.Allowed && u != u.Origin().RobotsURL() {
			return no
		}
		return v
	}, err
}

// Usage returns what the file says of the use of u.
func (r *Reservation) Usage(u decorum.URL) robots.Signals { return r.file.Usage(u) }

// SHA256 returns the hash of the file in hex, empty if there is none.
func (r *Reservation) SHA256() string {
	if len(r.Body) == 0 {
		return ""
	}
	sum := sha256.Sum256(r.Body)
	return hex.EncodeToString(sum[:])
}

// reservations are those of the origins in play.
type reservations struct {
	mu      sync.Mutex
	known   lately[decorum.Origin, *Reservation]
	lookups map[decorum.Origin]uint64 // by which lease
}

// rememberedFiles is how many are held in memory at least, twice as many at most: a
// file may be of 64 KiB. It is more than are in hand at a time.
const rememberedFiles = 250

func (rs *reservations) find(o decorum.Origin) *Reservation {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r, _ := rs.known.find(o)
	return r
}

func (rs *reservations) keep(o decorum.Origin, r *Reservation) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.known.keep(o, r, rememberedFiles)
}

// usage returns what an origin's file says of u, as far as it is in mind.
func (rs *reservations) usage(u decorum.URL) robots.Signals {
	if r := rs.find(u.Origin()); r != nil {
		return r.file.Usage(u)
	}
	return nil
}

// claimLookup reports whether l may look up the file of its origin: nobody else does.
func (rs *reservations) claimLookup(l storage.Lease) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.lookups == nil {
		rs.lookups = map[decorum.Origin]uint64{}
	}
	by, claimed := rs.lookups[target(l.Entry).Origin()]
	if !claimed {
		rs.lookups[target(l.Entry).Origin()] = l.Token
	}
	return !claimed || by == l.Token
}

// leave ends the claim of l, if it has one.
func (rs *reservations) leave(l storage.Lease) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if by, claimed := rs.lookups[target(l.Entry).Origin()]; claimed && by == l.Token {
		delete(rs.lookups, target(l.Entry).Origin())
	}
}

// reservationOf returns what is known of an origin's file, of this run or before.
func (c *Crawler) reservationOf(ctx context.Context, o decorum.Origin) (*Reservation, error) {
	if r := c.reservations.find(o); r != nil {
		return r, nil
	}
	return c.readReservation(ctx, o)
}

// readReservation returns what the notes say of it: another process may have learnt
// more than this one has in mind.
func (c *Crawler) readReservation(ctx context.Context, o decorum.Origin) (*Reservation, error) {
	r, err := ReadReservation(ctx, c.Frontier, o)
	if err == nil {
		c.reservations.keep(o, r)
	}
	return r, err
}

// reserve asks the tdmrep.json of the origin whether the page may be visited that
// robots.txt has cleared, if the crawl mines text and data. It returns the
// clearance, or one for the file, if that must come first.
func (c *Crawler) reserve(ctx context.Context, l storage.Lease, cl robots.Clearance) (robots.Clearance, error) {
	o, now := cl.URL().Origin(), c.now()
	if cl.ForRobots() || !isPage(l, cl) && !isWatch(l) || !o.IsHTTP() || !robots.Mines(c.Gate.Purposes()) {
		return cl, nil
	}
	r, err := c.reservationOf(ctx, o)
	if err != nil {
		return robots.Clearance{}, err
	}
	if !r.holds(now) {
		file, err := cl.Beside(robots.TDMRepURL(o))
		if err == nil {
			r, err = c.readReservation(ctx, o)
		}
		switch {
		case errors.Is(err, decorum.Disallowed): // what may not be read says nothing
		case err != nil:
			return robots.Clearance{}, err
		case r.holds(now): // somebody else has asked
		case c.reservations.claimLookup(l):
			return file, nil
		default:
			return robots.Clearance{}, pending(cl, decorum.Pending, now.Add(recheck), "its tdmrep.json is being fetched")
		}
	}
	if now.Before(r.Until) && r.blocksPages() {
		return robots.Clearance{}, pending(cl, decorum.Unreachable, r.Until, "its tdmrep.json cannot be had")
	}
	if v := r.Check(cl.URL(), c.Gate.Purposes()); !v.Allowed && !isWatch(l) {
		refusal := &robots.Refusal{Verdict: v, File: cl.File(), TDMRep: r.SHA256()}
		return robots.Clearance{}, &decorum.Error{Op: "use", URL: cl.URL().String(), Kind: decorum.Disallowed, Err: refusal}
	}
	if !r.grace.IsZero() {
		served := *r
		served.grace = time.Time{}
		c.reservations.keep(o, &served)
	}
	return cl, nil
}

// pending says that pages wait for the file of their origin.
func pending(cl robots.Clearance, kind decorum.Kind, until time.Time, why string) error {
	return &decorum.Error{Op: "use", URL: cl.URL().String(), Kind: kind, Err: &robots.PostponedError{Until: until, Why: why}}
}

// isDetour reports whether the visit is to a tdmrep.json that must come before the
// page whose turn it is.
func isDetour(l storage.Lease, cl robots.Clearance) bool {
	return !cl.ForRobots() && cl.URL() != target(l.Entry)
}

// receiveReservation learns what came back for a tdmrep.json. The page whose turn
// it was goes back and waits the host's rest.
func (c *Crawler) receiveReservation(ctx context.Context, v *Visit) (storage.Ack, error) {
	ack := storage.Ack{Outcome: storage.Again}
	if v.brokenOff {
		return ack, nil
	}
	ctx = afterwards(ctx)
	o := v.URL().Origin()
	before, err := c.reservationOf(ctx, o)
	if err != nil {
		return ack, err
	}
	r := c.learn(*before, v)
	note, err := json.Marshal(r)
	if err != nil {
		return ack, err
	}
	if err := c.Frontier.SetNote(ctx, o, reservationNote, note); err != nil {
		return ack, err
	}
	c.reservations.keep(o, r)
	if r.blocksPages() {
		c.Log.Warn("origin waits: its tdmrep.json cannot be had", "origin", o, "attempts", r.Failures, "again_at", r.Until)
		return ack, c.Frontier.Hold(ctx, o, r.Until, noSuchHost(v.Err))
	}
	if !bytes.Equal(r.Body, before.Body) {
		err = c.revive(ctx, o)
	}
	return ack, errors.Join(err, c.Frontier.Hold(ctx, o, time.Time{}, false))
}

// learn returns what is known of a file after v. Who answers that there is none
// has none. A server that fails is asked again, and has what it had before, or
// none, if it fails on.
func (c *Crawler) learn(r Reservation, v *Visit) *Reservation {
	if _, failed := failure(v); failed {
		r.Failures++
		r.Until = v.End.Add(retryReservation << min(r.Failures-1, patience))
		if r.Failures >= patience {
			r.Failures, r.Until, r.grace = patience, v.End.Add(c.Settings.ReservationTTL), v.End.Add(maxGrace)
		}
		return &r
	}
	r = Reservation{Fetched: v.End, Until: v.End.Add(c.Settings.ReservationTTL), grace: v.End.Add(maxGrace)}
	if !v.OK() {
		return &r
	}
	r.Body = v.Response.Body
	var damage error
	if r.file, damage = robots.ParseTDMRep(r.Body); damage != nil {
		c.Log.Info("tdmrep.json is damaged; what could be read of it counts", "url", v.URL(), "error", damage)
	}
	return &r
}
