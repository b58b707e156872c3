package crawler

import (
	"context"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// HostDueStore keeps what visits have earned hosts for crawls that did not make them, so
// that it holds when the process is started again, after a crash too. Crawls that
// share hosts share one. Each crawl's own store has the rests of its own visits.
type HostDueStore struct {
	// Store keeps rests of ten seconds and more, in notes with the http origin of
	// the host; they are durable before the visit is acked. It may be that of the
	// robots records.
	Store interface {
		storage.Notes
		Flush(context.Context) error
	}
	// RestartedAt is when this process began to go on with what an earlier one did.
	// Any host may have been visited just before, by a visit that a kill has hidden,
	// or whose rest was short: none is visited in the first ten seconds, nor before
	// the rest that the crawl asks for now is over. Zero: it begins anew.
	RestartedAt time.Time
}

// hostDueNote is the note that says when a host is due by what its last visits have
// earned it.
const hostDueNote = "rest"

// applyStoredHostDue tells limits, before a host is visited for the first time in this process,
// what visits of earlier ones have earned it.
func (r *HostDueStore) applyStoredHostDue(ctx context.Context, limiter *politeness.Limiter, host string, now time.Time) error {
	if r == nil || limiter.KnowsHost(host) {
		return nil
	}
	var due time.Time
	if !r.RestartedAt.IsZero() {
		due = r.RestartedAt.Add(minDurableDelay)
	}
	if httpOrigin, ok := parseOrigin("http://" + host); ok {
		note, err := r.Store.ReadNote(ctx, httpOrigin, hostDueNote)
		if err != nil {
			return err
		}
		if noted, err := time.Parse(time.RFC3339Nano, string(note)); err == nil {
			due = timecmp.Later(due, noted)
		}
	}
	limiter.PostponeHost(now, host, r.RestartedAt, due)
	return nil
}

// saveHostDueIfLongDelay makes durable what a visit has earned a host, if it is long. Where that
// cannot be for now, or the crawl is being halted, it goes the usual way.
func (r *HostDueStore) saveHostDueIfLongDelay(ctx context.Context, host string, state storage.HostState) error {
	httpOrigin, ok := parseOrigin("http://" + host)
	if r == nil || state.LostVisitDelay < minDurableDelay || !ok {
		return nil
	}
	if err := r.Store.SetNote(ctx, httpOrigin, hostDueNote, []byte(state.Due.UTC().Format(time.RFC3339Nano))); err != nil {
		return err
	}
	return flushUnlessStalled(ctx, r.Store)
}
