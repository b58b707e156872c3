package frontier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// Ends of a crawl, as Next returns them.
var (
	// ErrEmpty says that no URL is queued and none is in hand.
	ErrEmpty = errors.New("the frontier is empty")
	// ErrResting says that only pages are left whose revisit has not come. The
	// error that Next returns is a RestingError.
	ErrResting = errors.New("only pages that rest until their revisit are left")
	// ErrDormant says that only origins are left that nobody should wait for:
	// their robots.txt could not be had in several attempts, say, or they have
	// had their pages. Their URLs stay queued. Pages may rest besides.
	ErrDormant = errors.New("only origins are left that do not answer, ask for too long a delay or have had their pages")
)

// A RestingError is the end of a crawl that only has pages left whose revisit
// has not come.
type RestingError struct{ First time.Time } // when the first revisit is due

// Error says when the first revisit is due.
func (e *RestingError) Error() string {
	return fmt.Sprintf("%v; the first is due at %s", ErrResting, e.First.UTC().Format(time.RFC3339))
}

// Unwrap lets errors.Is find ErrResting.
func (e *RestingError) Unwrap() error { return ErrResting }

// Next waits until a URL is due and leases it. It returns ErrEmpty,
// ErrResting or ErrDormant when the crawl has come to its end, and the cause of
// ctx when that is done.
func (f *Frontier) Next(ctx context.Context) (storage.Lease, error) {
	f.waiting.Add(1)
	defer f.waiting.Add(-1)
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return storage.Lease{}, context.Cause(ctx)
	}
	for len(f.ready) == 0 {
		if err := f.refill(ctx); err != nil {
			return storage.Lease{}, err
		}
	}
	l := f.ready[0]
	f.ready = f.ready[1:]
	return l, nil
}

// stallCheck is how often a store that cannot write is asked again.
const stallCheck = time.Second

// refill asks the store for a lease for each worker that waits, and if there
// is none waits until there may be one. The caller holds the turn.
func (f *Frontier) refill(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	now := f.cfg.Now()
	want := max(1, int(f.waiting.Load()))
	var wait time.Duration
	if f.cfg.Budget != nil {
		want, wait = f.cfg.Budget.Ready(now, want)
	}
	leases, next, err := f.store.Lease(ctx, now, f.cfg.LeaseTTL, want) // if none: is it the end?
	if errors.Is(err, storage.ErrStalled) {
		return f.pause(ctx, stallCheck, nil) // the crawl pauses until the store can write again
	}
	if err != nil {
		return err
	}
	if next.Lost != f.lost {
		f.lost = next.Lost
		f.familiar.forget() // before what was lost is given out again
		f.admitted.forget()
	}
	if len(leases) > 0 {
		f.ready = leases
		return nil
	}
	switch {
	case next.Left == storage.Nothing && f.cfg.Idle && !next.Ask.IsZero():
		return f.pause(ctx, next.Ask.Sub(now), f.wake)
	case next.Left == storage.Nothing && f.cfg.Idle:
		return f.idle(ctx)
	case next.Left == storage.Nothing:
		return ErrEmpty
	case next.Left == storage.Resting && !f.cfg.Wait:
		return &RestingError{First: next.At}
	case next.Left == storage.Dormant && !f.cfg.Wait, f.tooLong(next.At.Sub(now)):
		return ErrDormant
	case want == 0:
		return f.pause(ctx, wait, nil) // no event shortens the wait for the crawl's own budget
	}
	at := next.At
	if !next.Ask.IsZero() && next.Ask.Before(at) {
		at = next.Ask
	}
	return f.pause(ctx, at.Sub(now), f.wake)
}

// tooLong reports whether nobody should wait for so long.
func (f *Frontier) tooLong(d time.Duration) bool {
	return !f.cfg.Wait && f.cfg.MaxWait > 0 && d > f.cfg.MaxWait
}

// pause waits for d to pass, for a change that may make the wait shorter, or for the
// store to fail. A nil wake never comes.
func (f *Frontier) pause(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-wake:
		return nil
	case <-f.failed: // the store gives the reason
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// idle waits for a change, or for the store to fail.
func (f *Frontier) idle(ctx context.Context) error {
	select {
	case <-f.wake:
		return nil
	case <-f.failed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// nudge makes the worker that waits in refill ask the store again.
func (f *Frontier) nudge() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// GiveBack returns leases that no worker took to their queues. Call it when
// the workers have stopped.
func (f *Frontier) GiveBack(ctx context.Context) error {
	acks := make([]storage.Ack, len(f.ready))
	for i, l := range f.ready {
		acks[i] = storage.Ack{Lease: l, Outcome: storage.Again}
	}
	f.ready = nil
	return f.store.Ack(ctx, acks)
}
