package daemon

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/storage"
)

// A roster is the hosts of a project at a moment. Parked URLs are not judged for
// it, and of robots.txt files it knows what somebody has sorted by.
type roster struct {
	at     time.Time
	fresh  time.Time   // until when it may be shown
	hosts  []*surveyed // by surveyed.place
	states map[string]int

	mu     sync.Mutex
	orders map[string][]*surveyed // by api.HostQuery.Sort: the smallest first
}

// roster lists the hosts. 100,000 of them take about 50 MiB.
func (q *inquiry) roster(ctx context.Context) (*roster, error) {
	hosts, err := q.hosts(ctx, "", func(*storage.OriginInfo) {})
	if err != nil {
		return nil, err
	}
	r := &roster{at: q.now.UTC(), hosts: make([]*surveyed, len(hosts)), states: map[string]int{}, orders: map[string][]*surveyed{}}
	for _, h := range hosts {
		r.states[h.State]++
		r.hosts[h.place] = h
	}
	return r, nil
}

// page returns the hosts that are asked for, and how many there are of them.
func (r *roster) page(ctx context.Context, q *inquiry, want api.HostQuery) (page []*surveyed, total int, err error) {
	order, err := r.order(ctx, q, want.Sort)
	if err != nil {
		return nil, 0, err
	}
	search := strings.ToLower(strings.TrimSpace(want.Search))
	if search == "" && want.State == "" {
		for i := want.Offset; i < min(want.Offset+want.Limit, len(order)); i++ {
			page = append(page, at(order, i, want.Down))
		}
		return page, len(order), nil
	}
	for i := range order {
		h := at(order, i, want.Down)
		if want.State != "" && h.State != want.State || !strings.Contains(h.Host.Host, search) {
			continue
		}
		if total++; total > want.Offset && len(page) < want.Limit {
			page = append(page, h)
		}
	}
	return page, total, nil
}

// at returns the host at a place, from the end if the order is read down.
func at(order []*surveyed, i int, down bool) *surveyed {
	if down {
		i = len(order) - 1 - i
	}
	return order[i]
}

// order returns the hosts in an order, which is worked out once.
func (r *roster) order(ctx context.Context, q *inquiry, by string) ([]*surveyed, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if order := r.orders[by]; order != nil {
		return order, nil
	}
	if by == "host" {
		order := slices.Clone(r.hosts)
		slices.SortFunc(order, func(a, b *surveyed) int { return strings.Compare(a.Host.Host, b.Host.Host) })
		r.orders[by] = order
		return order, nil
	}
	key := hostOrders[by]
	if by == sortAge {
		ages, err := r.ages(ctx, q)
		if err != nil {
			return nil, err
		}
		key = func(h *surveyed) hostKey { return hostKey{int64(ages[h.place])} }
	}
	r.orders[by] = r.sorted(key)
	return r.orders[by], nil
}

// sorted returns the hosts in the order of their keys, and in that in which they
// were met.
func (r *roster) sorted(key func(*surveyed) hostKey) []*surveyed {
	type keyed struct {
		hostKey
		place int
	}
	keys := make([]keyed, len(r.hosts))
	for i, h := range r.hosts {
		keys[i] = keyed{key(h), i}
	}
	slices.SortFunc(keys, func(a, b keyed) int {
		return cmp.Or(a.compare(b.hostKey), a.place-b.place)
	})
	order := make([]*surveyed, len(keys))
	for i, k := range keys {
		order[i] = r.hosts[k.place]
	}
	return order
}

// ages returns how old the robots.txt of each host's first origin is. One that
// was never fetched is the oldest.
func (r *roster) ages(ctx context.Context, q *inquiry) ([]time.Duration, error) {
	ages := make([]time.Duration, len(r.hosts))
	for i, h := range r.hosts {
		known, err := q.gate.Known(ctx, h.first)
		if err != nil {
			return nil, err
		}
		ages[i] = never
		if !known.Fetched.IsZero() {
			ages[i] = r.at.Sub(known.Fetched)
		}
	}
	return ages, nil
}

// sortAge is the order for which robots.txt files must be known.
const sortAge = "robots_age"

// hostOrders are the orders that hosts can be asked for in. A time that will not
// come, and a pace that is not known, are the largest.
var hostOrders = map[string]func(*surveyed) hostKey{
	"":            func(h *surveyed) hostKey { return concern(&h.Host) },
	"host":        nil, // see roster.order
	"state":       func(h *surveyed) hostKey { return hostKey{int64(slices.Index(states, h.State))} },
	"queued":      func(h *surveyed) hostKey { return hostKey{int64(h.Queued)} },
	"due":         func(h *surveyed) hostKey { return hostKey{moment(h.DueAt)} },
	"pace":        func(h *surveyed) hostKey { return hostKey{cmp.Or(int64(h.Median), int64(never))} },
	"last_status": func(h *surveyed) hostKey { return hostKey{int64(h.LastStatus)} },
	sortAge:       nil, // likewise
	"failures":    func(h *surveyed) hostKey { return hostKey{h.Failures} },
	"requests":    func(h *surveyed) hostKey { return hostKey{h.Requests} },
}

// never is longer than any rest, or age.
const never = time.Duration(math.MaxInt64)

// moment returns a time as a number, of which zero is the last.
func moment(t time.Time) int64 {
	if t.IsZero() {
		return math.MaxInt64
	}
	return t.UnixNano()
}
