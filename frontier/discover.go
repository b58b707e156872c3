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
	// A host beyond the limits is refused before anything of it is stored. Seeds come
	// first, so that their hosts exist when links to them are judged.
	if free, err = f.admitHosts(ctx, refused, free); err != nil {
		return 0, err
	}
	if crowd, err = f.admitHosts(ctx, refused, crowd); err != nil {
		return 0, err
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
