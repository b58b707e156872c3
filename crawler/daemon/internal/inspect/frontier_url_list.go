package inspect

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// FrontierURLs yields the URLs that the query selects, origin by origin. An error is yielded last.
func (q *Inspector) FrontierURLs(ctx context.Context, query api.FrontierURLQuery) iter.Seq2[*api.FrontierURL, error] {
	return func(yield func(*api.FrontierURL, error) bool) {
		l := &urlLister{Inspector: q, yield: yield, limit: query.Limit}
		if err := l.list(ctx, query); err != nil {
			yield(nil, err)
		}
	}
}

// A urlLister is one listing of URLs of the frontier.
type urlLister struct {
	*Inspector
	states   []storage.EntryState // states that the query selects
	yield    func(*api.FrontierURL, error) bool
	limit    int  // most URLs to yield; 0: no limit
	count    int  // URLs yielded so far
	isEnough bool // the limit is reached, or yield has returned false
}

// list yields the URLs that the query selects.
func (l *urlLister) list(ctx context.Context, query api.FrontierURLQuery) error {
	// Read the query.
	for s, name := range StateNames {
		if query.State == "" || query.State == name {
			l.states = append(l.states, storage.EntryState(s))
		}
	}
	if len(l.states) == 0 || query.Limit < 0 {
		return api.InvalidInput("%q is not a state of a URL, or %d is not a number of URLs", query.State, query.Limit)
	}
	host, err := ParseHostParam(query.Host)
	if err != nil {
		return err
	}
	var only decorum.Origin
	if query.Origin != "" {
		if only, err = ParseOriginParam(query.Origin); err != nil {
			return err
		}
	}
	// Find the origins first: Origins does not allow other calls of the store during its callback.
	// Find twice as many URLs as the limit, because the crawl may visit some of them meanwhile.
	var origins []decorum.Origin
	found := 0
	err = l.FrontierStore.Origins(ctx, func(o storage.OriginInfo) bool {
		if n := l.countURLs(&o); n > 0 && (host == "" || o.Origin.Host() == host) &&
			(only.IsZero() || o.Origin == only) {
			origins, found = append(origins, o.Origin), found+n
		}
		return l.limit == 0 || found < 2*l.limit
	})
	for i := 0; i < len(origins) && err == nil && !l.isEnough; i++ {
		err = l.listOrigin(ctx, origins[i])
	}
	return err
}

// countURLs returns how many URLs of an origin are in the selected states.
func (l *urlLister) countURLs(o *storage.OriginInfo) (n int) {
	for _, state := range l.states {
		n += [...]int{
			storage.StateQueued: o.QueuedURLs + o.LeasedURLs, storage.StateAwaitingRevisit: o.AwaitingRevisit,
			storage.StateParked: o.ParkedURLs,
		}[state]
	}
	return n
}

// listOrigin yields the selected URLs of one origin, with the reason why each waits or is parked.
func (l *urlLister) listOrigin(ctx context.Context, name decorum.Origin) error {
	o, _, err := l.FrontierStore.Origin(ctx, name)
	if err != nil {
		return err
	}
	if err := l.loadClosedPatterns(ctx); err != nil {
		return err
	}
	evaluate, err := crawler.NewVerdictFunc(ctx, l.Gate, l.FrontierStore, name)
	for i := 0; i < len(l.states) && err == nil && !l.isEnough; i++ {
		state := l.states[i]
		err = l.FrontierStore.OriginURLsInState(ctx, name, state, func(e storage.Entry, at time.Time) bool {
			u := ToAPIFrontierURL(&e, state, at)
			u.Reason = l.waitReason(&e, &o, state, evaluate)
			l.count++
			l.isEnough = !l.yield(u, nil) || l.count == l.limit
			return !l.isEnough
		})
	}
	return err
}

// waitReason returns why a URL waits or is parked, or "" for a URL that only waits for its turn.
func (l *urlLister) waitReason(e *storage.Entry, o *storage.OriginInfo, state storage.EntryState,
	evaluate func(decorum.URL) robots.Verdict) string {
	switch {
	case state == storage.StateParked:
		_, r := l.ParkedReason(*e, evaluate)
		if place := RuleLocationText(r); place != "" {
			return RefusalText(r) + " of " + place
		}
		return RefusalText(r)
	case o.HeldUntil.After(l.AsOf):
		return "its origin is held until " + FormatTime(o.HeldUntil)
	case e.FailedAttempts > 0:
		return fmt.Sprintf("postponed after %d failed visits", e.FailedAttempts)
	}
	return ""
}
