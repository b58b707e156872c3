package frontier

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
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

// A Budget is a limit of the whole crawl on how many visits may begin.
type Budget interface {
	// Ready returns how many of want visits may begin now and, if none, how
	// long to wait.
	Ready(now time.Time, want int) (grant int, wait time.Duration)
}

// Config is the frontier's share of a project's configuration.
type Config struct {
	// Scope decides which URLs belong to the crawl; nil: all.
	Scope *Scope
	// Params rewrites a URL by the project's rules, before Clean; nil: only ids
	// of sessions are taken off.
	Params *Params
	// Clean rewrites a URL by the rules known now (Clean-param); nil: not at all.
	Clean func(decorum.URL) decorum.URL
	// Budget limits the whole crawl; nil: no limit.
	Budget Budget
	// LeaseTTL is how long a URL stays in hand without a sign of life.
	// Default 2 min.
	LeaseTTL time.Duration
	// Order gives an entry that is discovered its Class and Rank, by which the
	// URLs of an origin go. Nil: DefaultOrder.
	Order func(*storage.Entry)
	// Wait makes Next wait for revisits and for dormant origins too, as a
	// daemon does; without it, it returns ErrResting or ErrDormant when nothing
	// else is left.
	Wait bool
	// Idle makes Next wait when nothing is left at all, too, until Discover brings
	// something; without it, it returns ErrEmpty.
	Idle bool
	// Longest is for how long Next waits, at most, for the first of the URLs that
	// are left: one that comes later is left as a dormant origin's is. 0: as long
	// as it takes.
	Longest time.Duration
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Discovered observes what Discover has queued because it is new, Refused
	// what it has not, for the reason given; nil: nobody. They are called by many
	// at a time, and must not block.
	Discovered func(storage.Entry)
	Refused    func(storage.Entry, error)
}

// A Frontier hands out URLs of hosts that may be visited now. Its methods may
// be called at the same time.
type Frontier struct {
	store storage.Store
	cfg   Config

	waiting atomic.Int64  // workers in Next
	turn    chan struct{} // held by the one worker that asks the store
	ready   []storage.Lease
	lost    uint64        // as the store counts
	wake    chan struct{} // something changed: ask the store again

	familiar familiar
	patterns patterns
	secured  secured
	refused  sightings
	cleaned  sightings
}

// New returns a frontier kept in store.
func New(store storage.Store, cfg Config) *Frontier {
	if cfg.LeaseTTL == 0 {
		cfg.LeaseTTL = 2 * time.Minute
	}
	if cfg.Order == nil {
		cfg.Order = DefaultOrder
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Frontier{store: store, cfg: cfg, familiar: familiar{seed: maphash.MakeSeed()},
		refused: sightings{note: refusedNote}, cleaned: sightings{note: cleanedNote},
		turn: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
}

// Discover offers entries to the crawl: each is cleaned, given its place,
// judged by scope and by how many of its kind there are, and queued if it is
// new. It returns how many were new. Entries of source Robots are the crawl's own
// errands (sitemaps, robots.txt hops), which scope lets go to any host.
func (f *Frontier) Discover(ctx context.Context, entries ...storage.Entry) (added int, err error) {
	return f.Offer(ctx, nil, slices.Clone(entries))
}

// Offer is Discover for who wants to know what becomes of these entries: refused,
// if it is not nil, is called with each that is out of scope, and why. The slice is
// worked in, and of no use to its owner from then on.
func (f *Frontier) Offer(ctx context.Context, refused func(storage.Entry, error), entries []storage.Entry) (added int, err error) {
	var free []storage.Entry
	crowd := entries[:0]
	for i := range entries {
		e := &entries[i]
		refusal, err := f.admit(ctx, e)
		switch {
		case err != nil:
			return 0, err
		case refusal != nil:
			if refused != nil {
				refused(*e, refusal)
			}
		case f.crowded(e):
			crowd = append(crowd, *e)
		default:
			free = append(free, *e)
		}
	}
	if len(free) > 0 {
		if added, err = f.addFree(ctx, free...); err != nil {
			return added, err
		}
	}
	if len(crowd) > 0 {
		n, e := f.addCrowd(ctx, crowd)
		added, err = added+n, e
	}
	if added > 0 {
		f.nudge()
	}
	return added, err
}

// Replace is Discover for e that takes the place of an entry of its host which is
// given up: of that kind there are not more than before, so that no limit on how
// many there are refuses it.
func (f *Frontier) Replace(ctx context.Context, e storage.Entry) error {
	if refusal, err := f.admit(ctx, &e); err != nil || refusal != nil {
		return err
	}
	_, err := f.addFree(ctx, e)
	f.nudge()
	return err
}

// admit prepares e and returns why it does not belong to the crawl, nil if it does.
func (f *Frontier) admit(ctx context.Context, e *storage.Entry) (refusal, err error) {
	if err := f.prepare(ctx, e); err != nil {
		return nil, err
	}
	if refusal = f.InScope(*e); refusal != nil {
		f.refuse(*e, refusal)
	}
	return refusal, nil
}

// addFree adds entries however many there are of their kind.
func (f *Frontier) addFree(ctx context.Context, entries ...storage.Entry) (added int, err error) {
	fates, err := f.store.Add(ctx, entries, 0)
	f.familiar.meet(entries, fates)
	f.tellAdded(entries, fates)
	return storage.CountAdded(fates), err
}

// tellAdded tells who wants to know of the entries that were new.
func (f *Frontier) tellAdded(entries []storage.Entry, fates []storage.Fate) {
	if f.cfg.Discovered == nil {
		return
	}
	for i, fate := range fates {
		if fate == storage.Added {
			f.cfg.Discovered(entries[i])
		}
	}
}

// prepare gives e the URL that it is queued under, and its place. The one that
// it was found under first is kept: there may be nothing at the clean one
// (CLEAN-05).
func (f *Frontier) prepare(ctx context.Context, e *storage.Entry) error {
	if e.Source != storage.Robots && e.Request == nil { // others go exactly to where they were meant to
		if err := f.fold(ctx, e); err != nil {
			return err
		}
		found := e.URL
		if e.URL = f.Clean(found); e.URL != found {
			if e.Found.IsZero() {
				e.Found = found
			}
			f.noteSession(found, *e)
		}
	}
	f.cfg.Order(e)
	return nil
}

// Clean returns u without what the project's rules, and those of Clean-param
// known now, take off. To clean twice is to clean once.
func (f *Frontier) Clean(u decorum.URL) decorum.URL {
	u = f.cfg.Params.Clean(u)
	if f.cfg.Clean != nil {
		u = f.cfg.Clean(u)
	}
	return u
}

// Params returns the project's rules for parameters.
func (f *Frontier) Params() *Params { return f.cfg.Params }

// InScope returns nil if e belongs to the crawl, else an error of Kind
// OutOfScope that says why not.
func (f *Frontier) InScope(e storage.Entry) error {
	if f.cfg.Scope == nil {
		return nil
	}
	return f.cfg.Scope.Check(e)
}

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
		return pause(ctx, stallCheck, nil) // the crawl pauses until the store can write again
	}
	if err != nil {
		return err
	}
	if next.Lost != f.lost {
		f.lost = next.Lost
		f.familiar.forget() // before what was lost is given out again
	}
	if len(leases) > 0 {
		f.ready = leases
		return nil
	}
	switch {
	case next.Left == storage.Nothing && f.cfg.Idle && !next.Ask.IsZero():
		return pause(ctx, next.Ask.Sub(now), f.wake)
	case next.Left == storage.Nothing && f.cfg.Idle:
		return idle(ctx, f.wake)
	case next.Left == storage.Nothing:
		return ErrEmpty
	case next.Left == storage.Resting && !f.cfg.Wait:
		return &RestingError{First: next.At}
	case next.Left == storage.Dormant && !f.cfg.Wait, f.tooLong(next.At.Sub(now)):
		return ErrDormant
	case want == 0:
		return pause(ctx, wait, nil) // nothing can hurry the crawl's own budget
	}
	at := next.At
	if !next.Ask.IsZero() && next.Ask.Before(at) {
		at = next.Ask
	}
	return pause(ctx, at.Sub(now), f.wake)
}

// tooLong reports whether nobody should wait for so long.
func (f *Frontier) tooLong(d time.Duration) bool {
	return !f.cfg.Wait && f.cfg.Longest > 0 && d > f.cfg.Longest
}

// pause waits for d to pass, or for a change that may make the wait shorter. A
// nil wake never comes.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// idle waits for a change.
func idle(ctx context.Context, wake <-chan struct{}) error {
	select {
	case <-wake:
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

// Ack ends leases: see storage.Store.
func (f *Frontier) Ack(ctx context.Context, acks ...storage.Ack) error {
	defer f.nudge()
	return f.store.Ack(ctx, acks)
}

// Mark notes whether a leased request was sent: see storage.Store.
func (f *Frontier) Mark(ctx context.Context, l storage.Lease, sent bool) error {
	return f.store.Mark(ctx, l, sent)
}

// Renew keeps a lease for another LeaseTTL.
func (f *Frontier) Renew(ctx context.Context, l storage.Lease) error {
	return f.store.Renew(ctx, l, f.cfg.Now(), f.cfg.LeaseTTL)
}

// LeaseTTL is how long a lease runs unless it is renewed.
func (f *Frontier) LeaseTTL() time.Duration { return f.cfg.LeaseTTL }

// Hold hands out no URL of the origin before until: see storage.Store.
func (f *Frontier) Hold(ctx context.Context, o decorum.Origin, until time.Time, dormant bool) error {
	defer f.nudge()
	return f.store.Hold(ctx, o, until, dormant)
}

// HoldKnown is Hold for an origin of which a URL may never have been found: then
// it does nothing, if the store can tell.
func (f *Frontier) HoldKnown(ctx context.Context, o decorum.Origin, until time.Time, dormant bool) error {
	if store, ok := f.store.(storage.Inspector); ok {
		if _, met, err := store.Origin(ctx, o); err != nil || !met {
			return err
		}
	}
	return f.Hold(ctx, o, until, dormant)
}

// Recall makes pages that rest due at once which were visited last before they
// were modified, and returns how many they were. URLs are rewritten as Discover
// does it.
func (f *Frontier) Recall(ctx context.Context, sightings ...storage.Sighting) (recalled int, err error) {
	known := slices.Clone(sightings)
	for i := range known {
		u, err := f.Secure(ctx, known[i].URL)
		if err != nil {
			return 0, err
		}
		known[i].URL = f.Clean(u)
	}
	defer f.nudge()
	return f.store.Recall(ctx, f.cfg.Now(), known)
}

// Revive queues the origin's parked URLs again for which judge returns true.
func (f *Frontier) Revive(ctx context.Context, o decorum.Origin, judge func(storage.Entry) bool) error {
	defer f.nudge()
	_, err := f.store.Revive(ctx, o, judge)
	return err
}

// ReviveAll queues all parked URLs again: what parked them is no longer so.
func (f *Frontier) ReviveAll(ctx context.Context) error {
	origins, err := f.store.Parked(ctx)
	if err != nil {
		return err
	}
	for _, o := range origins {
		if err := f.Revive(ctx, o, func(storage.Entry) bool { return true }); err != nil {
			return err
		}
	}
	return nil
}

// Reopen ends all dormant holds, if the store can name them: a run that goes on
// may be set otherwise than the one that set these origins aside. Where the
// reason still stands it is found again, without a request; but not before the
// host is due, so that holds stay of which stands says that they should.
func (f *Frontier) Reopen(ctx context.Context, stands func(storage.OriginInfo) bool) error {
	const batch = 10_000
	store, ok := f.store.(storage.Inspector)
	for more := ok; more; {
		var aside []decorum.Origin
		err := store.Origins(ctx, func(o storage.OriginInfo) bool {
			if o.Dormant && !o.Hold.IsZero() && !stands(o) {
				aside = append(aside, o.Origin)
			}
			return len(aside) < batch
		})
		if err != nil {
			return err
		}
		for _, o := range aside {
			if err := f.Hold(ctx, o, time.Time{}, false); err != nil {
				return err
			}
		}
		more = len(aside) == batch
	}
	return nil
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

// Note returns what SetNote kept for the origin under key, nil if nothing.
func (f *Frontier) Note(ctx context.Context, o decorum.Origin, key string) ([]byte, error) {
	return f.store.Note(ctx, o, key)
}

// SetNote keeps a value for the origin, in order with all other calls.
func (f *Frontier) SetNote(ctx context.Context, o decorum.Origin, key string, value []byte) error {
	return f.store.SetNote(ctx, o, key, value)
}

// Counts returns how much the frontier holds.
func (f *Frontier) Counts(ctx context.Context) (storage.Counts, error) { return f.store.Counts(ctx) }

// Flush makes everything so far durable.
func (f *Frontier) Flush(ctx context.Context) error { return f.store.Flush(ctx) }
