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

// Errors of Next that end a crawl.
var (
	// ErrEmpty means that no URL is queued or leased.
	ErrEmpty = errors.New("the frontier is empty")
	// ErrOnlyRevisitsLeft means that only pages are left that await their revisit. The error that
	// Next returns is an OnlyRevisitsLeftError.
	ErrOnlyRevisitsLeft = errors.New("no URLs left except pages that await their revisit")
	// ErrOnlySuspendedLeft means that, apart from pages that await their revisit, only origins are
	// left that no crawl should wait for: for example, several attempts to fetch their robots.txt
	// failed, or they have had their pages. Their URLs stay queued.
	ErrOnlySuspendedLeft = errors.New("no URLs left except on suspended origins")
)

// An OnlyRevisitsLeftError wraps ErrOnlyRevisitsLeft.
type OnlyRevisitsLeftError struct{ FirstRevisit time.Time } // when the first revisit is due

// Error returns the text of ErrOnlyRevisitsLeft and the time of the first revisit in UTC.
func (e *OnlyRevisitsLeftError) Error() string {
	return fmt.Sprintf("%v; the first is due at %s", ErrOnlyRevisitsLeft, e.FirstRevisit.UTC().Format(time.RFC3339))
}

// Unwrap returns ErrOnlyRevisitsLeft.
func (e *OnlyRevisitsLeftError) Unwrap() error { return ErrOnlyRevisitsLeft }

// Next waits until a URL is due and leases it. At the end of the crawl it returns ErrEmpty,
// ErrOnlyRevisitsLeft or ErrOnlySuspendedLeft; after ctx is done it returns the cause of ctx. Many
// workers may wait in it.
func (f *Frontier) Next(ctx context.Context) (storage.Lease, error) {
	if err := f.notes.readIfDue(ctx); err != nil {
		return storage.Lease{}, err
	}
	return f.dispatcher.next(ctx)
}

// ReturnUnusedLeases queues the URLs again that Next has leased ahead and that no worker took. Call
// it when the workers have stopped.
func (f *Frontier) ReturnUnusedLeases(ctx context.Context) error {
	return f.dispatcher.returnUnusedLeases(ctx)
}

// A dispatcher leases URLs from a queue for the workers that wait in next. One worker at a time
// calls the queue, on behalf of all.
type dispatcher struct {
	queue storage.Queue
	cfg   Config // uses Now, LeaseTTL, Budget and what ends next
	// recentCaches remember what the store holds. They are reset when the store has lost data.
	recentCaches []*boundedTextSet

	waitingWorkers atomic.Int64 // workers in next
	isStoreShared  atomic.Bool  // Lease has said that other processes use the store
	// leaseLock guards readyLeases and storeGeneration. It is a channel of capacity 1, full while
	// the worker that calls the queue holds it, so that other workers can wait for it or for their
	// context.
	leaseLock       chan struct{}
	readyLeases     []storage.Lease // leased, but not returned by next yet
	storeGeneration uint64          // storage.Wait.LossGeneration of the last Lease
	wake            chan struct{}   // full after a change: lease again
	// storeFailureSignal is closed when the store has failed for good; nil if the store never
	// reports it.
	storeFailureSignal <-chan struct{}
}

// newDispatcher returns the dispatcher of queue. The fields of cfg have their defaults.
func newDispatcher(queue storage.Queue, cfg Config, recentCaches ...*boundedTextSet) *dispatcher {
	d := &dispatcher{queue: queue, cfg: cfg, recentCaches: recentCaches, leaseLock: make(chan struct{}, 1),
		wake: make(chan struct{}, 1)}
	if n, ok := queue.(storage.FailureNotifier); ok {
		d.storeFailureSignal = n.FailureChannel()
	}
	return d
}

// next implements Frontier.Next.
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

// stallPollInterval is how often Next calls a store that cannot write.
const stallPollInterval = time.Second

// refillReadyOrWait leases a URL for each waiting worker. If none is due, it waits until one may
// be, and leaves readyLeases empty. The caller holds leaseLock.
func (d *dispatcher) refillReadyOrWait(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// Lease as many URLs as workers wait, within the budget. With an empty budget Lease still says
	// whether this is the end of the crawl.
	now := d.cfg.Now()
	want := max(1, int(d.waitingWorkers.Load()))
	var wait time.Duration
	if d.cfg.Budget != nil {
		want, wait = d.cfg.Budget.AvailableVisits(now, want)
	}
	leases, next, err := d.queue.Lease(ctx, now, d.cfg.LeaseTTL, want)
	if errors.Is(err, storage.ErrWriteStalled) {
		// The crawl pauses until the store can write again.
		return d.waitForTimerOrWake(ctx, time.After(stallPollInterval), nil)
	}
	if err != nil {
		return err
	}
	if !next.PollAt.IsZero() {
		d.isStoreShared.Store(true)
	}
	// What the store has lost is unknown again: reset the caches before a lost URL is leased or
	// offered.
	if next.LossGeneration != d.storeGeneration {
		d.storeGeneration = next.LossGeneration
		for _, cache := range d.recentCaches {
			cache.reset()
		}
	}
	if len(leases) > 0 {
		d.readyLeases = leases
		return nil
	}
	// Without a lease, the crawl has ended or waits for the next event.
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
	// No event shortens the wait for the crawl's own budget.
	case want == 0:
		return d.waitForTimerOrWake(ctx, time.After(wait), nil)
	}
	return d.waitForTimerOrWake(ctx, time.After(timecmp.EarlierOfSet(next.PollAt, next.Until).Sub(now)), d.wake)
}

// exceedsMaxWait reports whether wait is longer than MaxNextWait allows.
func (d *dispatcher) exceedsMaxWait(wait time.Duration) bool {
	return !d.cfg.WaitForRevisitsAndSuspensions && d.cfg.MaxNextWait > 0 && wait > d.cfg.MaxNextWait
}

// waitForTimerOrWake waits for timer, for wake, or for the store to fail. A nil timer or wake never
// fires. It returns an error only if ctx is done.
func (d *dispatcher) waitForTimerOrWake(ctx context.Context, timer <-chan time.Time, wake <-chan struct{}) error {
	select {
	case <-timer:
	case <-wake:
	case <-d.storeFailureSignal: // the next Lease returns the reason
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// wakeNext makes the worker that waits in refillReadyOrWait lease again.
func (d *dispatcher) wakeNext() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// returnUnusedLeases implements Frontier.ReturnUnusedLeases. It takes no lock, because the workers
// have stopped.
func (d *dispatcher) returnUnusedLeases(ctx context.Context) error {
	acks := make([]storage.Ack, len(d.readyLeases))
	for i, l := range d.readyLeases {
		acks[i] = storage.Ack{Lease: l, Outcome: storage.Requeue}
	}
	d.readyLeases = nil
	return d.queue.Ack(ctx, acks)
}
