package daemon

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A roster is the hosts of a project at one moment. Parked URLs are not judged for it,
// and it reads robots.txt files only for the order that needs them.
type roster struct {
	at     time.Time
	fresh  time.Time // until when it may be shown
	hosts  []listedHost
	whole  []*surveyed                // the first of hosts, at most maxHostsInMemory
	others map[int32][]decorum.Origin // of hosts with several origins, all of them, by the place in hosts
	states map[string]int

	mu     sync.Mutex
	orders map[string][]int32 // places in hosts by api.HostQuery.Sort, the smallest first; guarded by mu
}

// A listedHost is what it takes to sort and select a host and to read it again: 80
// bytes, the name, and 4 more for each order.
type listedHost struct {
	origin   decorum.Origin // the first
	rank     hostKey        // see concern
	queued   int64
	due      int64
	pace     int64
	requests int64
	failures int64
	status   int32
	state    int8 // in states
}

// roster lists the hosts. 100,000 of them take about 16 MiB.
func (q *inquiry) roster(ctx context.Context) (*roster, error) {
	r := &roster{
		at: q.now.UTC(), states: map[string]int{}, others: map[int32][]decorum.Origin{}, orders: map[string][]int32{},
	}
	if err := q.eachHost(ctx, false, r.add); err != nil {
		return nil, err
	}
	r.hosts = slices.Clip(r.hosts)
	return r, nil
}

// add adds a host.
func (r *roster) add(h *surveyed) {
	r.states[h.State]++
	switch {
	case len(r.hosts) < maxHostsInMemory:
		r.whole = append(r.whole, h)
	case len(h.others) > 0:
		r.others[int32(len(r.hosts))] = append([]decorum.Origin{h.first}, h.others...)
	}
	r.hosts = append(r.hosts, listedHost{
		origin: h.first, rank: concern(&h.Host), queued: int64(h.QueuedURLs), due: moment(h.DueAt), pace: int64(h.MedianObservedDelay),
		requests: h.Requests, failures: h.Failures, status: int32(h.LastStatus), state: int8(slices.Index(states, h.State)),
	})
}

// page returns the hosts that the query selects, and how many there are of them on all
// pages. Hosts beyond the first maxHostsInMemory are read again: what is said of them is
// newer than their order.
func (r *roster) page(ctx context.Context, q *inquiry, want api.HostQuery) (page []*surveyed, total int, err error) {
	order, err := r.order(ctx, q, want.Sort)
	if err != nil {
		return nil, 0, err
	}
	places, total := r.places(order, want)
	for _, place := range places {
		h, err := r.read(ctx, q, place)
		if err != nil {
			return nil, 0, err
		}
		if h != nil {
			page = append(page, h)
		}
	}
	return page, total, nil
}

// places selects a page from an order.
func (r *roster) places(order []int32, want api.HostQuery) (places []int32, total int) {
	search := strings.ToLower(strings.TrimSpace(want.Search))
	if search == "" && want.State == "" {
		for i := want.Offset; i < min(want.Offset+want.Limit, len(order)); i++ {
			places = append(places, at(order, i, want.Descending))
		}
		return places, len(order)
	}
	for i := range order {
		place := at(order, i, want.Descending)
		h := &r.hosts[place]
		if want.State != "" && states[h.state] != want.State || !strings.Contains(h.origin.Host(), search) {
			continue
		}
		if total++; total > want.Offset && len(places) < want.Limit {
			places = append(places, place)
		}
	}
	return places, total
}

// read returns the host at a place, from memory or from the store.
func (r *roster) read(ctx context.Context, q *inquiry, place int32) (*surveyed, error) {
	if int(place) < len(r.whole) {
		return r.whole[place], nil
	}
	if origins := r.others[place]; origins != nil {
		return q.readHost(ctx, origins)
	}
	return q.readHost(ctx, []decorum.Origin{r.hosts[place].origin})
}

// at returns the place at an index, from the end if the order is read down.
func at(order []int32, i int, down bool) int32 {
	if down {
		i = len(order) - 1 - i
	}
	return order[i]
}

// order returns the places of the hosts in an order, which is worked out once.
func (r *roster) order(ctx context.Context, q *inquiry, by string) ([]int32, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if order := r.orders[by]; order != nil {
		return order, nil
	}
	key := hostOrders[by]
	compare := func(i, j int32) int { return key(&r.hosts[i]).compare(key(&r.hosts[j])) }
	switch by {
	case "host":
		compare = func(i, j int32) int { return strings.Compare(r.hosts[i].origin.Host(), r.hosts[j].origin.Host()) }
	case sortAge:
		ages, err := r.ages(ctx, q)
		if err != nil {
			return nil, err
		}
		compare = func(i, j int32) int { return cmp.Compare(ages[i], ages[j]) }
	}
	order := make([]int32, len(r.hosts))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int { return cmp.Or(compare(i, j), int(i-j)) })
	r.orders[by] = order
	return order, nil
}

// ages returns how old the robots.txt of each host's first origin is. One that
// was never fetched is the oldest.
func (r *roster) ages(ctx context.Context, q *inquiry) ([]time.Duration, error) {
	ages := make([]time.Duration, len(r.hosts))
	for i := range r.hosts {
		known, err := q.gate.Known(ctx, r.hosts[i].origin)
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
var hostOrders = map[string]func(*listedHost) hostKey{
	"":            func(h *listedHost) hostKey { return h.rank },
	"host":        nil, // see roster.order
	"state":       func(h *listedHost) hostKey { return hostKey{int64(h.state)} },
	"queued":      func(h *listedHost) hostKey { return hostKey{h.queued} },
	"due":         func(h *listedHost) hostKey { return hostKey{h.due} },
	"pace":        func(h *listedHost) hostKey { return hostKey{cmp.Or(h.pace, int64(never))} },
	"last_status": func(h *listedHost) hostKey { return hostKey{int64(h.status)} },
	sortAge:       nil, // likewise
	"failures":    func(h *listedHost) hostKey { return hostKey{h.failures} },
	"requests":    func(h *listedHost) hostKey { return hostKey{h.requests} },
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
