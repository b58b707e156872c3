package daemon

import (
	"context"
	"hash/maphash"
	"slices"

	"github.com/decorum-crawler/decorum/storage"
)

// eachHost asks the store about all hosts, or the only one that is named, and calls
// also with each of their origins. A host with one origin and no parked URLs is
// complete as soon as it is met: done is called with it, and it is forgotten. The
// others are returned, for parked URLs are judged by asking the store, which must
// not be asked while it tells of origins. While others are at work on the crawl, all
// are returned: a host may get its second origin at any moment.
func (q *inquiry) eachHost(
	ctx context.Context, only string, also func(*storage.OriginInfo), done func(*surveyed),
) (map[string]*surveyed, error) {
	if only != "" || !q.still {
		return q.hosts(ctx, only, also)
	}
	several, err := q.severalOrigins(ctx)
	if err != nil {
		return nil, err
	}
	kept := map[string]*surveyed{}
	err = q.store.Origins(ctx, func(o storage.OriginInfo) bool {
		name := o.Origin.Host()
		h := kept[name]
		if h == nil {
			met := q.newHost(name, &o.Host)
			h = &met
		}
		h.addOrigin(&o, q.now)
		also(&o)
		if several.has(name) || o.Parked > 0 {
			kept[name] = h
			return true
		}
		q.finish(h)
		done(h)
		return true
	})
	for _, h := range kept {
		q.finish(h)
	}
	return kept, err
}

// finish works out what follows from all origins of a host.
func (q *inquiry) finish(h *surveyed) {
	cover(&h.Tally)
	h.mind(q.project.Politeness.MaxCrawlDelay)
}

// hashes are hosts, by their hashes, in order. A host that has the hash of another
// counts as one of several origins, which makes no difference but memory.
type hashes struct {
	seed maphash.Seed
	of   []uint64
}

func (s *hashes) has(host string) bool {
	_, found := slices.BinarySearch(s.of, maphash.String(s.seed, host))
	return found
}

// severalOrigins returns the hosts that have several origins. It takes eight bytes for each origin.
func (q *inquiry) severalOrigins(ctx context.Context) (*hashes, error) {
	all := hashes{seed: maphash.MakeSeed()}
	err := q.store.Origins(ctx, func(o storage.OriginInfo) bool {
		all.of = append(all.of, maphash.String(all.seed, o.Origin.Host()))
		return true
	})
	slices.Sort(all.of)
	several := all.of[:0]
	for i, hash := range all.of {
		if i > 0 && hash == all.of[i-1] && (len(several) == 0 || several[len(several)-1] != hash) {
			several = append(several, hash)
		}
	}
	all.of = several
	return &all, err
}

// leadingHosts keeps the hosts that come first in a report: all of them if limit is 0.
type leadingHosts struct {
	limit int
	hosts []*surveyed
}

// add adds a host. Twice as many as are wanted are kept, so that each costs little.
func (t *leadingHosts) add(h *surveyed) {
	t.hosts = append(t.hosts, h)
	if t.limit > 0 && len(t.hosts) >= 2*max(t.limit, 64) {
		t.cut()
	}
}

// cut sorts the hosts and drops those that come too late.
func (t *leadingHosts) cut() {
	slices.SortFunc(t.hosts, func(a, b *surveyed) int { return byConcern(&a.Host, &b.Host) })
	if t.limit > 0 && len(t.hosts) > t.limit {
		clear(t.hosts[t.limit:]) // lets them be collected
		t.hosts = t.hosts[:t.limit]
	}
}

func (t *leadingHosts) sorted() []*surveyed {
	t.cut()
	return t.hosts
}
