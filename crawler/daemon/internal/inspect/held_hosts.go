package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/storage"
)

// HeldHosts describes the hosts with queued URLs that wait for longer than their delay: after failures, a
// Retry-After, or because of their robots.txt. Suspended hosts, for which no crawl waits, are not among them.
type HeldHosts struct {
	Count  int       // hosts
	More   bool      // the crawl has more origins than were read
	Others bool      // other hosts, neither held nor suspended, have URLs, or may have if More is set
	Until  time.Time // when the first of the held hosts may be visited
	Reason string    // why that host waits; "": unknown
}

// HeldHosts returns which hosts are held. It reads at most maxOrigins origins of the frontier.
func (q *Inspector) HeldHosts(ctx context.Context, maxOrigins int) (h HeldHosts, err error) {
	read, isHeld := 0, map[string]bool{} // by hosts with URLs that are not suspended
	var first storage.OriginInfo
	err = q.FrontierStore.Origins(ctx, func(o storage.OriginInfo) bool {
		if read++; read > maxOrigins {
			h.More = true
			return false
		}
		if o.QueuedURLs+o.LeasedURLs == 0 || hostStateFromOrigin(&o, q.AsOf) == HostSuspended {
			return true
		}
		until, host := holdEnd(&o, q.AsOf), o.Origin.Host()
		if !until.IsZero() && !isHeld[host] {
			h.Count++
		}
		isHeld[host] = isHeld[host] || !until.IsZero()
		if !until.IsZero() && (first.Origin.IsZero() || until.Before(h.Until)) {
			first, h.Until = o, until
		}
		return true
	})
	h.Others = h.More || h.Count < len(isHeld)
	if err != nil || h.Count == 0 {
		return h, err
	}
	// The gate knows why pages wait for a robots.txt, and the statistics of the host how its last visit ended.
	postponed, err := q.Gate.PostponedReason(ctx, q.AsOf, first.Origin)
	stats := crawler.DecodeHostStats(first.HostState.EncodedStats)
	switch {
	case err != nil:
	case postponed != nil:
		h.Reason = plaintext.ReplaceControlChars(postponed.Reason)
	case first.HostState.ConsecutiveFailures == 0:
	case stats.Health.LastFailureStatus == 0:
		h.Reason = "no answer"
	default:
		h.Reason = fmt.Sprintf("status %d", stats.Health.LastFailureStatus)
	}
	return h, err
}

// holdEnd returns when the hold of an origin with queued URLs ends; zero if it is not held at now.
func holdEnd(o *storage.OriginInfo, now time.Time) time.Time {
	switch {
	case o.QueuedURLs == 0:
		return time.Time{}
	case o.HeldUntil.After(now):
		return o.HeldUntil
	case o.HostState.ConsecutiveFailures > 0 && o.HostState.Due.After(now):
		return o.HostState.Due
	}
	return time.Time{}
}
