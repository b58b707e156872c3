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
	// ErrOnlyRevisitsLeft says that only pages are left whose revisit has not come. The
	// error that Next returns is an OnlyRevisitsLeftError.
	ErrOnlyRevisitsLeft = errors.New("only pages that rest until their revisit are left")
	// ErrOnlySuspendedLeft says that only origins are left that nobody should wait for:
	// their robots.txt could not be had in several attempts, say, or they have
	// had their pages. Their URLs stay queued. Pages may rest besides.
	ErrOnlySuspendedLeft = errors.New("only origins are left that do not answer, ask for too long a delay or have had their pages")
)

// An OnlyRevisitsLeftError is the end of a crawl that only has pages left whose revisit
// has not come.
type OnlyRevisitsLeftError struct{ FirstRevisit time.Time } // when the first revisit is due

// Error says when the first revisit is due.
func (e *OnlyRevisitsLeftError) Error() string {
	return fmt.Sprintf("%v; the first is due at %s", ErrOnlyRevisitsLeft, e.FirstRevisit.UTC().Format(time.RFC3339))
}

// Unwrap lets errors.Is find ErrOnlyRevisitsLeft.
func (e *OnlyRevisitsLeftError) Unwrap() error { return ErrOnlyRevisitsLeft }

// Next waits until a URL is due and leases it. It returns ErrEmpty,
// ErrOnlyRevisitsLeft or ErrOnlySuspendedLeft when the crawl has come to its end, and the cause of
// ctx when that is done.
func (f *Frontier) Next(ctx context.Context) (storage.Lease, error) {
	f.waitingWorkers.Add(1)
	defer f.waitingWorkers.Add(-1)
	select {
	case f.leaseLock <- struct{}{}:
		defer func() { <-f.leaseLock }()
	case <-ctx.Done():
		return storage.Lease{}, context.Cause(ctx)
	}
	for len(f.readyLeases) == 0 {
		if err := f.refillReadyOrWait(ctx); err != nil {
			return storage.Lease{}, err
		}
	}
	l := f.readyLeases[0]
	f.readyLeases = f.readyLeases[1:]
	return l, nil
}

// stallPollInterval is how often a store that cannot write is asked again.
const stallPollInterval = time.Second

// refillReadyOrWait asks the store for a lease for each worker that waits, and if there
// is none waits until there may be one. The caller holds the turn.
func (f *Frontier) refillReadyOrWait(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	now := f.cfg.Now()
	want := max(1, int(f.waitingWorkers.Load()))
	var wait time.Duration
	if f.cfg.Budget != nil {
		want, wait = f.cfg.Budget.AvailableVisits(now, want)
	}
	leases, next, err := f.store.Lease(ctx, now, f.cfg.LeaseTTL, want) // if none: is it the end?
	if errors.Is(err, storage.ErrWriteStalled) {
		return f.waitForTimerOrWake(ctx, stallPollInterval, nil) // the crawl pauses until the store can write again
	}
	if err != nil {
		return err
	}
	if next.LossGeneration != f.storeGeneration {
		f.storeGeneration = next.LossGeneration
		f.recentURLs.reset() // before what was lost is given out again
		f.recentlyAdmittedHosts.reset()
	}
	if len(leases) > 0 {
		f.readyLeases = leases
		return nil
	}
	switch {
	case next.RemainingWorkKind == storage.RemainingNone && f.cfg.WaitWhenEmpty && !next.PollAt.IsZero():
		return f.waitForTimerOrWake(ctx, next.PollAt.Sub(now), f.wake)
	case next.RemainingWorkKind == storage.RemainingNone && f.cfg.WaitWhenEmpty:
		return f.waitForChange(ctx)
	case next.RemainingWorkKind == storage.RemainingNone:
		return ErrEmpty
	case next.RemainingWorkKind == storage.RemainingRevisits && !f.cfg.WaitForRevisitsAndSuspensions:
		return &OnlyRevisitsLeftError{FirstRevisit: next.Until}
	case next.RemainingWorkKind == storage.RemainingSuspended && !f.cfg.WaitForRevisitsAndSuspensions, f.exceedsMaxWaitInNext(next.Until.Sub(now)):
		return ErrOnlySuspendedLeft
	case want == 0:
		return f.waitForTimerOrWake(ctx, wait, nil) // no event shortens the wait for the crawl's own budget
	}
	at := next.Until
	if !next.PollAt.IsZero() && next.PollAt.Before(at) {
		at = next.PollAt
	}
	return f.waitForTimerOrWake(ctx, at.Sub(now), f.wake)
}

// exceedsMaxWaitInNext reports whether nobody should wait for so long.
func (f *Frontier) exceedsMaxWaitInNext(d time.Duration) bool {
	return !f.cfg.WaitForRevisitsAndSuspensions && f.cfg.MaxNextWait > 0 && d > f.cfg.MaxNextWait
}

// waitForTimerOrWake waits for d to pass, for a change that may make the wait shorter, or for the
// store to fail. A nil wake never comes.
func (f *Frontier) waitForTimerOrWake(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-wake:
		return nil
	case <-f.storeFailureSignal: // the store gives the reason
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitForChange waits for a change, or for the store to fail.
func (f *Frontier) waitForChange(ctx context.Context) error {
	select {
	case <-f.wake:
		return nil
	case <-f.storeFailureSignal:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wakeNext makes the worker that waits in refill ask the store again.
func (f *Frontier) wakeNext() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// ReturnUnusedLeases returns leases that no worker took to their queues. Call it when
// the workers have stopped.
func (f *Frontier) ReturnUnusedLeases(ctx context.Context) error {
	acks := make([]storage.Ack, len(f.readyLeases))
	for i, l := range f.readyLeases {
		acks[i] = storage.Ack{Lease: l, Outcome: storage.Requeue}
	}
	f.readyLeases = nil
	return f.store.Ack(ctx, acks)
}
