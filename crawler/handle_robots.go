package crawler

import (
	"bytes"
	"context"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// handleRobots tells the gate what came back for a robots.txt, and the
// frontier what follows from it. The URL whose turn it was goes back and waits
// the delay just learned.
func (c *Crawler) handleRobots(ctx context.Context, v *Visit) (storage.Ack, error) {
	ack := storage.Ack{Outcome: storage.Requeue}
	if !v.Lease.RobotsFor.IsZero() {
		ack.Outcome = storage.Done // a hop is an errand of its own
	}
	if v.interrupted {
		c.Gate.CancelFetch(v.Clearance) // no news of the server: the next one may ask
		return storage.Ack{Outcome: storage.Requeue}, nil
	}
	if v.wasNeverSent() && v.Lease.RobotsFor.IsZero() {
		c.Gate.CancelFetch(v.Clearance) // no request left: the refusal was ours
		c.Log.Warn("not visited", "origin", v.URL().Origin(), "error", v.Err)
		return ack, c.Frontier.Hold(ctx, v.URL().Origin(), v.End.Add(suspendDuration), true)
	}
	ctx = commitContext(ctx) // what came back is learnt, even when the crawl is being halted
	result, err := c.Gate.RecordFetch(ctx, v.End, v.Clearance, v.Response, v.Err)
	if err != nil {
		return ack, err
	}
	if c.Hooks.RobotsFetched != nil {
		c.Hooks.RobotsFetched(result)
	}
	if err := c.recordIfHTTPSUnreachable(ctx, v); err != nil {
		return ack, err
	}
	// After a hop to another host, the origins of this one must know of its pause.
	if _, _, err := c.hostDelayAndNextAllowedTime(ctx, result.Origin, v.End); err != nil {
		return ack, err
	}
	return ack, c.followRobotsRedirectOrSetHold(ctx, v.URL(), result, v.Err)
}

// followRobotsRedirectOrSetHold acts on what was learnt of an origin's robots.txt by asking for from;
// failed is why no answer came, if none did.
func (c *Crawler) followRobotsRedirectOrSetHold(ctx context.Context, from decorum.URL, result gate.FetchResult, fetchErr error) error {
	switch {
	case !result.RedirectURL.IsZero():
		// The target is paced on its own host like any visit, and the origin's pages wait for
		// it. The hold comes first: the visit to the hop ends it. It is short, for a crash may
		// leave the hold without the hop: see queueRobotsRedirect.
		until := c.now().Add(recheckDelay)
		if err := c.Frontier.Hold(ctx, result.Origin, until, result.PostponedErr.Suspended); err != nil {
			return err
		}
		return c.queueRobotsRedirect(ctx, from, result.Origin, result.PostponedErr)
	case !result.HasRulesInForce:
		if n := result.PostponedErr.ConsecutiveFailures; n&(n-1) == 0 { // the first time, and ever more seldom
			c.Log.Warn("origin closed: its robots.txt cannot be had", "origin", result.Origin,
				"why", result.PostponedErr.Reason, "attempts", n, "again_at", result.PostponedErr.Until)
		}
		return c.Frontier.Hold(ctx, result.Origin, result.PostponedErr.Until, result.PostponedErr.Suspended || isHostNotFound(fetchErr))
	}
	return c.Frontier.Hold(ctx, result.Origin, time.Time{}, false)
}

// robotsRedirectNote is the note, in the frontier's store, that says which redirect of an
// origin's robots.txt has been queued.
const robotsRedirectNote = "hop"

// queueRobotsRedirect queues the redirect that an origin waits for, unless that was done.
// The gate's notes are a store of their own: after a crash it may wait for what
// the frontier has lost.
func (c *Crawler) queueRobotsRedirect(ctx context.Context, from decorum.URL, o decorum.Origin, postponed *gate.OriginPostponedError) error {
	id := []byte(postponed.RedirectPendingSince.UTC().Format(time.RFC3339Nano) + " " + postponed.RedirectURL.String())
	if done, err := c.Frontier.Store().ReadNote(ctx, o, robotsRedirectNote); err != nil || bytes.Equal(done, id) {
		return err
	}
	entry := storage.Entry{URL: postponed.RedirectURL, Source: storage.SourcePrerequisite, PriorityClass: storage.ClassFirst, RobotsFor: o, Referrer: from.String()}
	if _, err := c.Frontier.Discover(ctx, entry); err != nil {
		return err
	}
	return c.Frontier.Store().SetNote(ctx, o, robotsRedirectNote, id)
}
