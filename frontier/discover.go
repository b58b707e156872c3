package frontier

import (
	"context"
	"slices"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// Discover offers entries to the crawl: each is cleaned, given its place,
// judged by scope and by how many of its kind there are, and queued if it is
// new. It returns how many were new. Entries of source Robots are the crawl's own
// errands (sitemaps, robots.txt hops), which scope lets go to any host.
func (f *Frontier) Discover(ctx context.Context, entries ...storage.Entry) (added int, err error) {
	return f.DiscoverReportingRefusals(ctx, nil, slices.Clone(entries))
}

// DiscoverReportingRefusals is Discover for who wants to know what becomes of these entries: refused,
// if it is not nil, is called with each that is out of scope, and why. The slice is
// worked in, and of no use to its owner from then on.
func (f *Frontier) DiscoverReportingRefusals(ctx context.Context, refused func(storage.Entry, error), entries []storage.Entry) (added int, err error) {
	var unlimited []storage.Entry
	limited := entries[:0]
	for i := range entries {
		e := &entries[i]
		refusal, err := f.prepareEntryAndCheckScope(ctx, e)
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
	// A host beyond the limits is refused before anything of it is stored. Seeds come
	// first, so that their hosts exist when links to them are judged.
	if unlimited, err = f.hosts.filter(ctx, refused, unlimited); err != nil {
		return 0, err
	}
	if limited, err = f.hosts.filter(ctx, refused, limited); err != nil {
		return 0, err
	}
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

// AddReplacement is Discover for e that takes the place of an entry of its host which is
// given up: of that kind there are not more than before, so that no limit on how
// many there are refuses it.
func (f *Frontier) AddReplacement(ctx context.Context, e storage.Entry) error {
	if refusal, err := f.prepareEntryAndCheckScope(ctx, &e); err != nil || refusal != nil {
		return err
	}
	_, err := f.addWithoutPatternLimit(ctx, e)
	f.dispatcher.wakeNext()
	return err
}

// prepareEntryAndCheckScope prepares e and returns why it does not belong to the crawl, nil if it does.
func (f *Frontier) prepareEntryAndCheckScope(ctx context.Context, e *storage.Entry) (refusal, err error) {
	if err := f.normalizeURLAndAssignOrder(ctx, e); err != nil {
		return nil, err
	}
	if refusal = f.CheckScope(*e); refusal != nil {
		f.refusals.countAndReport(*e, refusal)
	}
	return refusal, nil
}

// addWithoutPatternLimit adds entries however many there are of their kind.
func (f *Frontier) addWithoutPatternLimit(ctx context.Context, entries ...storage.Entry) (added int, err error) {
	results, err := f.addToStore(ctx, entries, 0)
	return storage.CountAdded(results), err
}

// addToStore adds entries to the store, up to limit of an origin, remembers those that it
// holds, and tells who wants to know of those that were new.
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

// normalizeURLAndAssignOrder gives e the URL that it is queued under, and its place. The one that
// it was found under first is kept: there may be nothing at the clean one
// (CLEAN-05).
func (f *Frontier) normalizeURLAndAssignOrder(ctx context.Context, e *storage.Entry) error {
	if e.Source != storage.SourcePrerequisite && e.Request == nil { // others go exactly to where they were meant to
		if err := f.httpsUpgrades.upgradeEntry(ctx, e); err != nil {
			return err
		}
		found := e.URL
		if e.URL = f.cleanURL(found); e.URL != found {
			if e.UncleanedURL.IsZero() {
				e.UncleanedURL = found
			}
			if hasSessionIDInPath(found) && f.CheckScope(*e) == nil {
				f.sessionIDRemovals.countSessionIDRemoval(found)
			}
		}
	}
	f.cfg.AssignOrder(e)
	return nil
}

// cleanURL returns u without what the project's rules, and those of Clean-param
// known now, take off. To clean twice is to clean once.
func (f *Frontier) cleanURL(u decorum.URL) decorum.URL {
	u = f.cfg.ParamCleaner.CleanURL(u)
	if f.cfg.CleanURL != nil {
		u = f.cfg.CleanURL(u)
	}
	return u
}

// ParamCleaner returns the project's rules for parameters.
func (f *Frontier) ParamCleaner() *ParamCleaner { return f.cfg.ParamCleaner }

// CheckScope returns nil if e belongs to the crawl, else an error of Kind
// OutOfScope that says why not.
func (f *Frontier) CheckScope(e storage.Entry) error { return f.cfg.Scope.Check(e) }
