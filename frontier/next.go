package frontier

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
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
func (f *Frontier) Next(ctx context.Context) (storage.Lease, error) { return f.dispatcher.next(ctx) }

// ReturnUnusedLeases returns leases that no worker took to their queues. Call it when
// the workers have stopped.
func (f *Frontier) ReturnUnusedLeases(ctx context.Context) error {
	return f.dispatcher.returnUnusedLeases(ctx)
}

// A dispatcher leases URLs from a queue for the workers that wait in next. One worker at a
// time asks the queue, for all of them.
type dispatcher struct {
	queue        storage.Queue
	cfg          Config            // its clock, LeaseTTL and Budget, and what next waits for
	recentCaches []*boundedTextSet // of what the store holds: emptied when the store has lost some of it

	waitingWorkers     atomic.Int64    // workers in next
	leaseLock          chan struct{}   // held by the one worker that asks the queue; guards the two fields that follow
	readyLeases        []storage.Lease // leased, and taken by no worker yet
	storeGeneration    uint64          // storage.Wait.LossGeneration of the last Lease
	wake               chan struct{}   // something changed: ask the queue again
	storeFailureSignal <-chan struct{} // closed when the store has failed for good; nil: the store never reports that
}

// newDispatcher returns the dispatcher of a queue. cfg has its defaults.
func newDispatcher(queue storage.Queue, cfg Config, recentCaches ...*boundedTextSet) *dispatcher {
	d := &dispatcher{queue: queue, cfg: cfg, recentCaches: recentCaches, leaseLock: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
	if n, ok := queue.(storage.FailureNotifier); ok {
		d.storeFailureSignal = n.FailureChannel()
	}
	return d
}

// next is Frontier.Next.
func (d *dispatcher) next(ctx context.Context) (storage.Lease, error) {
	d.waitingWorkers.Add(1)
	defer d.waitingWorkers.Add(-1)
	select {
	case d.leaseLock <- struct{}{}:
		defer func() { <-d.leaseLock }()
	case <-ctx.Done():
		return storage.Lease{}, context.Cause(ctx)
	}
	for len(d.readyLeases) == 0 {
		if err := d.refillReadyOrWait(ctx); err != nil {
			return storage.Lease{}, err
		}
	}
	l := d.readyLeases[0]
	d.readyLeases = d.readyLeases[1:]
	return l, nil
}

// stallPollInterval is how often a store that cannot write is asked again.
const stallPollInterval = time.Second

// refillReadyOrWait asks the queue for a lease for each worker that waits, and if there
// is none waits until there may be one. It needs leaseLock.
func (d *dispatcher) refillReadyOrWait(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	now := d.cfg.Now()
	want := max(1, int(d.waitingWorkers.Load()))
	var wait time.Duration
	if d.cfg.Budget != nil {
		want, wait = d.cfg.Budget.AvailableVisits(now, want)
	}
	leases, next, err := d.queue.Lease(ctx, now, d.cfg.LeaseTTL, want) // if none: is it the end?
	if errors.Is(err, storage.ErrWriteStalled) {
		// The crawl pauses until the store can write again.
		return d.waitForTimerOrWake(ctx, time.After(stallPollInterval), nil)
	}
	if err != nil {
		return err
	}
	if next.LossGeneration != d.storeGeneration {
		d.storeGeneration = next.LossGeneration
		for _, cache := range d.recentCaches {
			cache.reset() // before what was lost is given out again
		}
	}
	if len(leases) > 0 {
		d.readyLeases = leases
		return nil
	}
	switch {
	case next.RemainingWorkKind == storage.RemainingNone && d.cfg.WaitWhenEmpty && !next.PollAt.IsZero():
		return d.waitForTimerOrWake(ctx, time.After(next.PollAt.Sub(now)), d.wake)
	case next.RemainingWorkKind == storage.RemainingNone && d.cfg.WaitWhenEmpty:
		return d.waitForTimerOrWake(ctx, nil, d.wake)
	case next.RemainingWorkKind == storage.RemainingNone:
		return ErrEmpty
	case next.RemainingWorkKind == storage.RemainingRevisits && !d.cfg.WaitForRevisitsAndSuspensions:
		return &OnlyRevisitsLeftError{FirstRevisit: next.Until}
	case next.RemainingWorkKind == storage.RemainingSuspended && !d.cfg.WaitForRevisitsAndSuspensions,
		d.exceedsMaxWait(next.Until.Sub(now)):
		return ErrOnlySuspendedLeft
	case want == 0:
		return d.waitForTimerOrWake(ctx, time.After(wait), nil) // no event shortens the wait for the crawl's own budget
	}
	return d.waitForTimerOrWake(ctx, time.After(timecmp.EarlierOfSet(next.PollAt, next.Until).Sub(now)), d.wake)
}

// exceedsMaxWait reports whether nobody should wait for so long.
func (d *dispatcher) exceedsMaxWait(wait time.Duration) bool {
	return !d.cfg.WaitForRevisitsAndSuspensions && d.cfg.MaxNextWait > 0 && wait > d.cfg.MaxNextWait
}

// waitForTimerOrWake waits for the timer, for a change that may make the wait shorter, or for the
// store to fail. A nil timer or wake never comes.
func (d *dispatcher) waitForTimerOrWake(ctx context.Context, timer <-chan time.Time, wake <-chan struct{}) error {
	select {
	case <-timer:
	case <-wake:
	case <-d.storeFailureSignal: // the store gives the reason
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// wakeNext makes the worker that waits in refillReadyOrWait ask the queue again.
func (d *dispatcher) wakeNext() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// returnUnusedLeases returns leases that no worker took to their queues. The workers have
// stopped.
func (d *dispatcher) returnUnusedLeases(ctx context.Context) error {
	acks := make([]storage.Ack, len(d.readyLeases))
	for i, l := range d.readyLeases {
		acks[i] = storage.Ack{Lease: l, Outcome: storage.Requeue}
	}
	d.readyLeases = nil
	return d.queue.Ack(ctx, acks)
}
