package frontier

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// A VisitBudget is a limit of the whole crawl on how many visits may begin.
type VisitBudget interface {
	// AvailableVisits returns how many of want visits may begin now and, if none, how
	// long to wait.
	AvailableVisits(now time.Time, want int) (grant int, wait time.Duration)
}

// Config is the frontier's share of a project's configuration.
type Config struct {
	// Scope decides which URLs belong to the crawl; nil: all.
	Scope *Scope
	// ParamCleaner rewrites a URL by the project's rules, before CleanURL; nil: only ids
	// of sessions are taken off.
	ParamCleaner *ParamCleaner
	// CleanURL rewrites a URL by the rules known now (Clean-param); nil: not at all.
	CleanURL func(decorum.URL) decorum.URL
	// Budget limits the whole crawl; nil: no limit.
	Budget VisitBudget
	// LeaseTTL is how long a URL stays in hand without a sign of life.
	// Default 2 min.
	LeaseTTL time.Duration
	// AssignOrder gives an entry that is discovered its PriorityClass and PriorityRank, by which the
	// URLs of an origin go. Nil: AssignDefaultOrder.
	AssignOrder func(*storage.Entry)
	// WaitForRevisitsAndSuspensions makes Next wait for revisits and for dormant origins too, as a
	// daemon does; without it, it returns ErrOnlyRevisitsLeft or ErrOnlySuspendedLeft when nothing
	// else is left.
	WaitForRevisitsAndSuspensions bool
	// WaitWhenEmpty makes Next wait when nothing is left at all, too, until Discover brings
	// something; without it, it returns ErrEmpty.
	WaitWhenEmpty bool
	// MaxNextWait is for how long Next waits, at most, for the first of the URLs that
	// are left: one that comes later is left as a dormant origin's is. 0: as long
	// as it takes.
	MaxNextWait time.Duration
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// OnNewURLQueued observes what Discover has queued because it is new, OnRefused
	// what it has not, for the reason given; nil: nobody. They are called by many
	// at a time, and must not block.
	OnNewURLQueued func(storage.Entry)
	OnRefused      func(storage.Entry, error)
	// IsMemoryLow reports whether memory is nearly used up: while it returns true, links
	// to new hosts are refused and counted as LowMemory. Many goroutines may call it at
	// the same time, and it must be quick. Nil: memory does not limit hosts.
	IsMemoryLow func() bool
}

// A Frontier hands out URLs of hosts that may be visited now. Its methods may
// be called at the same time.
type Frontier struct {
	store storage.Store
	cfg   Config

	dispatcher        *dispatcher           // hands out URLs
	recentURLs        seenCache             // URLs of the seen set that were offered lately
	hosts             hostCountLimiter      // how many hosts there may be
	patterns          urlsPerPatternLimiter // how many URLs of a pattern there may be
	httpsUpgrades     httpsUpgradeTracker   // which origins have moved to https
	refusals          refusalCounter        // what Discover has refused
	sessionIDRemovals refusalCounter        // what CleanURL has taken the id of a session off
}

// New returns a frontier kept in store.
func New(store storage.Store, cfg Config) *Frontier {
	cfg.LeaseTTL = cmp.Or(cfg.LeaseTTL, 2*time.Minute)
	if cfg.AssignOrder == nil {
		cfg.AssignOrder = AssignDefaultOrder
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	f := &Frontier{store: store, cfg: cfg,
		recentURLs:        seenCache{newBoundedTextSet(maxRecentURLs)},
		httpsUpgrades:     httpsUpgradeTracker{notes: store, scope: cfg.Scope},
		refusals:          refusalCounter{noteKey: refusalsNoteKey, onRefused: cfg.OnRefused},
		sessionIDRemovals: refusalCounter{noteKey: sessionIDsNoteKey},
	}
	f.hosts = hostCountLimiter{store: store, scope: cfg.Scope, isMemoryLow: cfg.IsMemoryLow, refusals: &f.refusals,
		recentlyAdmitted: newBoundedTextSet(maxRecentHosts)}
	f.patterns.refusals = &f.refusals
	f.patterns.seen, _ = store.(storage.Inspector)
	if cfg.Scope != nil {
		f.patterns.maxURLs = cfg.Scope.cfg.MaxURLsPerPattern
	}
	f.dispatcher = newDispatcher(store, cfg, &f.recentURLs.boundedTextSet, &f.hosts.recentlyAdmitted)
	return f
}

// Store returns the store that New was given. A crawl keeps its notes in it and makes it
// durable by Store().Flush. Call the methods of the Frontier for what changes which URL is next:
// a worker that waits in Next does not see a change that is made in the store directly.
func (f *Frontier) Store() storage.Store { return f.store }

// Ack ends leases and wakes Next: see storage.Queue.
func (f *Frontier) Ack(ctx context.Context, acks ...storage.Ack) error {
	defer f.dispatcher.wakeNext()
	return f.store.Ack(ctx, acks)
}

// Renew keeps a lease for another LeaseTTL by the clock of the Frontier: see storage.Queue.
func (f *Frontier) Renew(ctx context.Context, l storage.Lease) error {
	return f.store.Renew(ctx, l, f.cfg.Now(), f.cfg.LeaseTTL)
}

// LeaseTTL returns how long a lease runs unless it is renewed.
func (f *Frontier) LeaseTTL() time.Duration { return f.cfg.LeaseTTL }

// Hold hands out no URL of the origin before until, and wakes Next, which may wait for a hold
// that ends earlier than it did: see storage.Queue.
func (f *Frontier) Hold(ctx context.Context, o decorum.Origin, until time.Time, suspended bool) error {
	defer f.dispatcher.wakeNext()
	return f.store.Hold(ctx, o, until, suspended)
}

// HoldOriginIfKnown is Hold for an origin of which a URL may never have been found: then
// it does nothing, if the store can tell.
func (f *Frontier) HoldOriginIfKnown(ctx context.Context, o decorum.Origin, until time.Time, suspended bool) error {
	if store, ok := f.store.(storage.Inspector); ok {
		if _, known, err := store.Origin(ctx, o); err != nil || !known {
			return err
		}
	}
	return f.Hold(ctx, o, until, suspended)
}

// RescheduleByLastmod makes pages that rest due at once which were visited last before they
// were modified, and returns how many they were. URLs are rewritten as Discover
// does it.
func (f *Frontier) RescheduleByLastmod(ctx context.Context, lastmods ...storage.SitemapLastmod) (rescheduled int, err error) {
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

// UnparkMatchingURLs queues the origin's parked URLs again for which match returns true. The zero
// Origin stands for every origin.
func (f *Frontier) UnparkMatchingURLs(ctx context.Context, o decorum.Origin, match func(storage.Entry) bool) error {
	defer f.dispatcher.wakeNext()
	_, err := f.store.UnparkMatchingURLs(ctx, o, match)
	return err
}

// EndSuspensionsExcept ends all dormant holds, if the store can name them: a run that goes on
// may be set otherwise than the one that set these origins aside. Where the
// reason still stands it is found again, without a request; but not before the
// host is due, so that holds stay of which keepHold says that they should.
//
// A run that goes on may find a store that counted no hosts yet. It counts them first.
func (f *Frontier) EndSuspensionsExcept(ctx context.Context, keepHold func(storage.OriginInfo) bool) error {
	if err := f.hosts.ensureHostsCounted(ctx); err != nil {
		return err
	}
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
