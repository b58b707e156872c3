package crawler

import (
	"context"
	"errors"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// A request that is not safe (RFC 9110, section 9.2.1), as a POST is not, is sent
// once at most: before its first byte leaves it is marked in the store, durably,
// and what is marked is not sent again. Whether the server acted upon it, when no
// whole answer came, nobody can say: that is told, and left to a person.

// Reasons not to send a request that must not be sent twice.
var (
	errSentBefore = errors.New("it was sent before, and what came of it is not known")
	errNotMarked  = errors.New("it cannot be noted that it is sent")
)

// markSentDurably notes durably that the request of l is about to be sent. If that fails,
// nothing is noted, and nothing is to be sent.
func (c *Crawler) markSentDurably(ctx context.Context, l storage.Lease) error {
	err := c.Frontier.Store().MarkSent(ctx, l, true)
	if err == nil {
		if err = c.Frontier.Store().Flush(ctx); err == nil {
			return nil
		}
		err = errors.Join(err, c.Frontier.Store().MarkSent(commitContext(ctx), l, false))
	}
	return &decorum.Error{Op: "send", URL: l.URL.String(), Kind: decorum.NotDue, Err: errors.Join(errNotMarked, err)}
}

// countAndLogIfInDoubt tells of a request that was sent, now or before, and to which no whole
// answer came.
func (c *Crawler) countAndLogIfInDoubt(v *Visit) {
	if errors.Is(v.Err, decorum.InDoubt) {
		c.counters.count(func(s *Stats) { s.InDoubt++ })
		c.Log.Warn("a request was sent whose outcome is not known; it is not sent again",
			"method", v.Lease.Request.MethodOrGet(), "url", v.URL(), "why", v.Err)
	}
}
