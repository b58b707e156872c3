package frontier

import (
	"context"
	"math"
	"slices"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// Discover offers entries to the crawl. It cleans each URL, assigns its order, checks it against
// the scope and the limits of how many URLs and hosts there may be, and queues it if it is new. It
// returns how many were new. Entries of source storage.SourcePrerequisite, which are sitemaps and
// redirects of robots.txt, may go to any host.
func (f *Frontier) Discover(ctx context.Context, entries ...storage.Entry) (added int, err error) {
	return f.DiscoverReportingRefusals(ctx, nil, slices.Clone(entries))
}

// DiscoverReportingRefusals does what Discover does. It calls refused, unless it is nil, with each
// entry that is out of scope or whose host exceeds a limit of hosts, and with the reason; entries
// beyond the limits of URLs, as MaxURLsPerHost, go to Config.OnRefused alone. It overwrites entries,
// which the caller must not use afterwards.
func (f *Frontier) DiscoverReportingRefusals(ctx context.Context, refused func(storage.Entry, error),
	entries []storage.Entry) (added int, err error) {
	return f.discover(ctx, refused, entries, false)
}

// discover implements DiscoverReportingRefusals. isLate queues the entries behind all other URLs.
func (f *Frontier) discover(ctx context.Context, refused func(storage.Entry, error),
	entries []storage.Entry, isLate bool) (added int, err error) {
	// Check each entry alone: it is refused, or joins one of two lists.
	var unlimited []storage.Entry
	limited := entries[:0]
	for i := range entries {
		e := &entries[i]
		refusal, err := f.prepareEntryAndCheckScope(ctx, e)
		if isLate {
			e.PriorityClass, e.PriorityRank = storage.ClassLate, math.MaxUint16
		}
		switch {
		case err != nil:
			return 0, err
		case refusal != nil:
			if refused != nil {
				refused(*e, refusal)
			}
		case f.isSubjectToCountLimits(e):
			limited = append(limited, *e)
		default:
			unlimited = append(unlimited, *e)
		}
	}
	// Refuse hosts beyond the limits before any of their URLs is stored. Seeds come first, so
	// that their hosts are admitted when links to them are checked.
	if unlimited, err = f.hosts.filter(ctx, refused, unlimited); err != nil {
		return 0, err
	}
	if limited, err = f.hosts.filter(ctx, refused, limited); err != nil {
		return 0, err
	}
	// Add the remaining entries to the store, which knows which of them are new.
	if len(unlimited) > 0 {
		if added, err = f.addWithoutPatternLimit(ctx, unlimited...); err != nil {
			return added, err
		}
	}
	if len(limited) > 0 {
		n, e := f.addLimited(ctx, limited)
		added, err = added+n, e
	}
	if added > 0 {
		f.dispatcher.wakeNext()
	}
	return added, err
}

// AddReplacement queues e in place of another entry of its host that is given up. It checks e
// against the scope, but not against the limits of how many URLs and hosts there may be, because
// the number does not grow.
func (f *Frontier) AddReplacement(ctx context.Context, e storage.Entry) error {
	if refusal, err := f.prepareEntryAndCheckScope(ctx, &e); err != nil || refusal != nil {
		return err
	}
	_, err := f.addWithoutPatternLimit(ctx, e)
	f.dispatcher.wakeNext()
	return err
}

// prepareEntryAndCheckScope cleans e and assigns its order. It returns why e is out of scope, nil
// if it belongs to the crawl.
func (f *Frontier) prepareEntryAndCheckScope(ctx context.Context, e *storage.Entry) (refusal, err error) {
	if err := f.LoadSeedRedirects(ctx); err != nil {
		return nil, err
	}
	if err := f.normalizeURLAndAssignOrder(ctx, e); err != nil {
		return nil, err
	}
	if refusal = f.CheckScope(*e); refusal != nil {
		f.refusals.countAndReport(*e, refusal)
	}
	return refusal, nil
}

// addWithoutPatternLimit adds entries without a limit on their number.
func (f *Frontier) addWithoutPatternLimit(ctx context.Context, entries ...storage.Entry) (added int, err error) {
	results, err := f.addToStore(ctx, entries, 0)
	return storage.CountAdded(results), err
}

// addToStore adds entries to the store, up to limit of an origin in all; 0: no limit. It remembers
// those that the store holds, and reports new ones to Config.OnNewURLQueued.
func (f *Frontier) addToStore(ctx context.Context, entries []storage.Entry, limit int) ([]storage.AddOutcome, error) {
	results, err := f.store.Add(ctx, entries, limit)
	f.recentURLs.addStored(entries, results)
	for i, result := range results {
		if result == storage.Added && f.cfg.OnNewURLQueued != nil {
			f.cfg.OnNewURLQueued(entries[i])
		}
	}
	return results, err
}

// normalizeURLAndAssignOrder replaces e.URL by the URL that e is queued under, and assigns its
// order. The first URL that e was found under is kept in e.UncleanedURL, because the clean one may
// not exist on the server (CLEAN-05).
func (f *Frontier) normalizeURLAndAssignOrder(ctx context.Context, e *storage.Entry) error {
	// A prerequisite, and an entry with a request of its own, are fetched at exactly their URL.
	if e.Source != storage.SourcePrerequisite && e.Request == nil {
		if err := f.httpsUpgrades.upgradeEntry(ctx, e); err != nil {
			return err
		}
		found := e.URL
		if e.URL = f.cleanURL(found); e.URL != found {
			if e.UncleanedURL.IsZero() {
				e.UncleanedURL = found
			}
			if f.cfg.ParamCleaner.removesSessionID(found) && f.CheckScope(*e) == nil {
				f.sessionIDRemovals.countSessionIDRemoval(found)
			}
		}
	}
	f.cfg.AssignOrder(e)
	return nil
}

// cleanURL returns u rewritten by the project's rules and by Config.CleanURL. It is idempotent.
func (f *Frontier) cleanURL(u decorum.URL) decorum.URL {
	u = f.cfg.ParamCleaner.CleanURL(u)
	if f.cfg.CleanURL != nil {
		u = f.cfg.CleanURL(u)
	}
	return u
}

// ParamCleaner returns Config.ParamCleaner.
func (f *Frontier) ParamCleaner() *ParamCleaner { return f.cfg.ParamCleaner }

// Scope returns Config.Scope with the sites that redirects of seeds led to; nil: all URLs.
func (f *Frontier) Scope() *Scope { return f.cfg.Scope }

// CheckScope returns nil if e belongs to the crawl, otherwise an error of Kind decorum.OutOfScope
// that gives the reason. It does not check how many URLs and hosts there are.
func (f *Frontier) CheckScope(e storage.Entry) error {
	if err := f.cfg.Scope.Check(e); err != nil {
		return err
	}
	return f.duplicates.check(e)
}
