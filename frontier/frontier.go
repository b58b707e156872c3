package frontier

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// A VisitBudget limits how many visits of the whole crawl may begin.
type VisitBudget interface {
	// AvailableVisits returns how many of want visits may begin now. If that is 0, wait is how long
	// to wait before the next call.
	AvailableVisits(now time.Time, want int) (grant int, wait time.Duration)
}

// Config configures a Frontier.
type Config struct {
	// Scope decides which URLs belong to the crawl; nil: all.
	Scope *Scope
	// ParamCleaner rewrites a URL by the project's rules, before CleanURL; nil: only session IDs
	// are removed.
	ParamCleaner *ParamCleaner
	// CleanURL rewrites a URL by the Clean-param rules known now; nil: not at all. It must be
	// idempotent and keep the origin.
	CleanURL func(decorum.URL) decorum.URL
	// Budget limits the visits of the whole crawl; nil: no limit.
	Budget VisitBudget
	// LeaseTTL is how long a lease lasts unless it is renewed. Default 2 min.
	LeaseTTL time.Duration
	// AssignOrder sets the PriorityClass and PriorityRank of a discovered entry, which order the
	// URLs of an origin. Nil: AssignDefaultOrder.
	AssignOrder func(*storage.Entry)
	// WaitForRevisitsAndSuspensions makes Next wait for revisits and for suspended origins too, as
	// a daemon does. Otherwise Next returns ErrOnlyRevisitsLeft or ErrOnlySuspendedLeft when
	// nothing else is left.
	WaitForRevisitsAndSuspensions bool
	// WaitWhenEmpty makes Next wait while nothing is queued, until Discover adds a URL. Otherwise
	// Next returns ErrEmpty.
	WaitWhenEmpty bool
	// MaxNextWait is how long Next waits at most for the first URL that becomes due. If that takes
	// longer, Next returns ErrOnlySuspendedLeft. 0: no limit. It has no effect with
	// WaitForRevisitsAndSuspensions.
	MaxNextWait time.Duration
	// Now returns the present time; nil: time.Now.
	Now func() time.Time
	// OnNewURLQueued is called with each entry that Discover has queued because it is new,
	// OnRefused with each that it has refused, and the reason. Either may be nil. They are called
	// concurrently, and must not block.
	OnNewURLQueued func(storage.Entry)
	OnRefused      func(storage.Entry, error)
	// IsMemoryLow reports whether memory is nearly used up. While it returns true, links to new
	// hosts are refused and counted as LowMemory. It is called concurrently and must be quick. Nil:
	// memory does not limit hosts.
	IsMemoryLow func() bool
}

// A Frontier decides which URLs are queued, and leases those of hosts that are due. Its methods may
// be called concurrently.
type Frontier struct {
	store storage.Store
	cfg   Config

	dispatcher        *dispatcher            // leases URLs for Next
	recentURLs        seenCache              // URLs of the seen set that were offered recently
	hosts             hostCountLimiter       // limits the number of hosts
	countLimiters     []*urlCountLimiter     // limit the URLs of groups, as of patterns, in this order
	duplicates        duplicatePatternCloser // patterns of URLs whose pages repeat others
	notes             *crawlNotesReader      // reads what earlier runs and other processes know of the crawl
	httpsUpgrades     httpsUpgradeTracker    // origins that have moved to https
	redirects         *redirectTracker       // redirects of seeds that left the scope
	refusals          refusalCounter         // counts what Discover refused
	sessionIDRemovals refusalCounter         // counts URLs that lost a session ID
	notFollowed       refusalCounter         // counts nofollow links, and pages that need rendering
}

// New returns a Frontier that keeps its URLs in store.
func New(store storage.Store, cfg Config) *Frontier {
	cfg.LeaseTTL = cmp.Or(cfg.LeaseTTL, 2*time.Minute)
	if cfg.AssignOrder == nil {
		cfg.AssignOrder = AssignDefaultOrder
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	// Build the parts. They share the counters, and know the store and the configuration, but not
	// the Frontier. The Scope is a copy, because Frontiers that share one follow different redirects.
	redirects := &redirectTracker{notes: store, base: cfg.Scope}
	cfg.Scope = redirects.extendedScope()
	f := &Frontier{store: store, cfg: cfg, redirects: redirects,
		recentURLs:        seenCache{newBoundedTextSet(maxRecentURLs)},
		httpsUpgrades:     httpsUpgradeTracker{notes: store, scope: cfg.Scope},
		refusals:          refusalCounter{noteKey: refusalsNoteKey, onRefused: cfg.OnRefused},
		sessionIDRemovals: refusalCounter{noteKey: sessionIDsNoteKey},
		notFollowed:       refusalCounter{noteKey: notFollowedNoteKey},
	}
	f.hosts = hostCountLimiter{store: store, scope: cfg.Scope, isMemoryLow: cfg.IsMemoryLow, refusals: &f.refusals,
		recentlyAdmitted: newBoundedTextSet(maxRecentHosts)}
	if cfg.Scope != nil {
		f.countLimiters = newURLCountLimiters(&cfg.Scope.cfg, store, &f.refusals)
		f.duplicates.limit = cfg.Scope.cfg.MaxDuplicatesPerPattern
	}
	f.dispatcher = newDispatcher(store, cfg, &f.recentURLs.boundedTextSet, &f.hosts.recentlyAdmitted)
	f.notes = &crawlNotesReader{store: store, duplicates: &f.duplicates, redirects: redirects, now: cfg.Now,
		isShared: &f.dispatcher.isStoreShared}
	return f
}

// Store returns the store passed to New. A crawl keeps its notes in it and calls its Flush. Change
// the queue through the Frontier only: a worker that waits in Next does not notice a change made in
// the store directly.
func (f *Frontier) Store() storage.Store { return f.store }

// Ack ends leases and wakes Next. See storage.Queue.
func (f *Frontier) Ack(ctx context.Context, acks ...storage.Ack) error {
	defer f.dispatcher.wakeNext()
	return f.store.Ack(ctx, acks)
}

// NextURLDue returns when the next URL of host can be leased, and the zero time if the host has none.
// known is false if the store cannot say.
func (f *Frontier) NextURLDue(ctx context.Context, host string) (due time.Time, known bool) {
	if store, ok := f.store.(storage.NextDueReporter); ok {
		return store.NextURLDue(ctx, host)
	}
	return time.Time{}, false
}

// Renew extends a lease to LeaseTTL from now by the Frontier's clock. See storage.Queue.
func (f *Frontier) Renew(ctx context.Context, l storage.Lease) error {
	return f.store.Renew(ctx, l, f.cfg.Now(), f.cfg.LeaseTTL)
}

// LeaseTTL returns how long a lease lasts unless it is renewed.
func (f *Frontier) LeaseTTL() time.Duration { return f.cfg.LeaseTTL }

// Hold keeps the URLs of o from being leased before until, and wakes Next, because the new hold may
// end earlier than the last. See storage.Queue.
func (f *Frontier) Hold(ctx context.Context, o decorum.Origin, until time.Time, suspended bool) error {
	defer f.dispatcher.wakeNext()
	return f.store.Hold(ctx, o, until, suspended)
}

// HoldOriginIfKnown does what Hold does, unless the store can tell that it has no URL of o.
func (f *Frontier) HoldOriginIfKnown(ctx context.Context, o decorum.Origin, until time.Time, suspended bool) error {
	if store, ok := f.store.(storage.Inspector); ok {
		if _, known, err := store.Origin(ctx, o); err != nil || !known {
			return err
		}
	}
	return f.Hold(ctx, o, until, suspended)
}

// RescheduleByLastmod makes pages due at once that await a revisit and were modified after their
// last visit. It returns how many there were. It rewrites URLs as Discover does.
func (f *Frontier) RescheduleByLastmod(ctx context.Context,
	lastmods ...storage.SitemapLastmod) (rescheduled int, err error) {
	rewritten := slices.Clone(lastmods)
	for i := range rewritten {
		u, err := f.UpgradeIfOriginMovedToHTTPS(ctx, rewritten[i].URL)
		if err != nil {
			return 0, err
		}
		rewritten[i].URL = f.cleanURL(u)
	}
	defer f.dispatcher.wakeNext()
	return f.store.RescheduleByLastmod(ctx, f.cfg.Now(), rewritten)
}

// UnparkMatchingURLs queues those parked URLs of o again for which match returns true. The zero
// Origin stands for all origins.
func (f *Frontier) UnparkMatchingURLs(ctx context.Context, o decorum.Origin, match func(storage.Entry) bool) error {
	defer f.dispatcher.wakeNext()
	_, err := f.store.UnparkMatchingURLs(ctx, o, match)
	return err
}

// EndSuspensionsExcept prepares a resumed run. The run may be configured differently from the run
// that suspended origins, so it ends all suspensions for which keepHold returns false: if the
// reason persists, the crawl finds it again without a request, once the host is due. keepHold
// returns true for the suspensions that must last until then. If the store cannot list origins, no
// suspension ends.
//
// It also counts the hosts of a store that has not counted them yet.
func (f *Frontier) EndSuspensionsExcept(ctx context.Context, keepHold func(storage.OriginInfo) bool) error {
	if err := f.hosts.ensureHostsCounted(ctx); err != nil {
		return err
	}
	// The store must not be called while it lists origins, so collect a batch, end its holds, and
	// list again. Ended holds are not listed again.
	const batch = 10_000
	store, ok := f.store.(storage.Inspector)
	for more := ok; more; {
		var suspended []decorum.Origin
		err := store.Origins(ctx, func(o storage.OriginInfo) bool {
			if o.Suspended && !o.HeldUntil.IsZero() && !keepHold(o) {
				suspended = append(suspended, o.Origin)
			}
			return len(suspended) < batch
		})
		if err != nil {
			return err
		}
		for _, o := range suspended {
			if err := f.Hold(ctx, o, time.Time{}, false); err != nil {
				return err
			}
		}
		more = len(suspended) == batch
	}
	return nil
}
