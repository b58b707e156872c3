package inspect

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A HostListSnapshot is the hosts of a project at one moment. Parked URLs are not judged for it,
// and it reads robots.txt files only for the order that needs them.
type HostListSnapshot struct {
	CreatedAt    time.Time
	expiresAt    time.Time       // until when it may be shown
	hosts        []hostSortEntry // at most MaxHostsInMemory of them with their reports
	CountByState map[string]int

	mu            sync.Mutex
	indexesBySort map[string][]int32 // places in hosts by api.HostQuery.Sort, the smallest first; guarded by mu
}

// A hostSortEntry is what it takes to sort and select a host and to read it again: 88
// bytes, the name, and 4 more for each order.
type hostSortEntry struct {
	hostRef
	attentionKey hostSortValues // see attentionSortKey
	queuedURLs   int64
	dueAt        int64
	medianDelay  int64
	requests     int64
	failures     int64
	lastStatus   int32
	stateIndex   int8 // in states
}

// NewHostList lists the hosts. 100,000 of them take about 16 MiB.
func (q *Inspector) NewHostList(ctx context.Context) (*HostListSnapshot, error) {
	r := &HostListSnapshot{
		CreatedAt: q.AsOf.UTC(), CountByState: map[string]int{}, indexesBySort: map[string][]int32{},
	}
	if err := q.ForEachHostReport(ctx, false, r.addHost); err != nil {
		return nil, err
	}
	r.hosts = slices.Clip(r.hosts)
	return r, nil
}

// addHost adds a host.
func (r *HostListSnapshot) addHost(h *HostReport) {
	r.CountByState[h.State]++
	r.hosts = append(r.hosts, hostSortEntry{
		hostRef: newHostRef(h, len(r.hosts) < MaxHostsInMemory), attentionKey: attentionSortKey(&h.Host),
		queuedURLs: int64(h.QueuedURLs), dueAt: unixNanoOrMax(h.DueAt), medianDelay: int64(h.MedianObservedDelay),
		requests: h.Requests, failures: h.Failures, lastStatus: int32(h.LastStatus), stateIndex: int8(slices.Index(HostStates, h.State)),
	})
}

// Page returns the hosts that the query selects, and how many there are of them on all
// pages. Hosts beyond the first MaxHostsInMemory are read again: what is said of them is
// newer than their order.
func (r *HostListSnapshot) Page(ctx context.Context, q *Inspector, query api.HostQuery) (page []*HostReport, total int, err error) {
	order, err := r.sortedIndexes(ctx, q, query.Sort)
	if err != nil {
		return nil, 0, err
	}
	indexes, total := r.filterAndPaginate(order, query)
	for _, index := range indexes {
		h, err := r.hosts[index].load(ctx, q)
		if err != nil {
			return nil, 0, err
		}
		if h != nil {
			page = append(page, h)
		}
	}
	return page, total, nil
}

// filterAndPaginate selects a page from an order.
func (r *HostListSnapshot) filterAndPaginate(order []int32, query api.HostQuery) (indexes []int32, total int) {
	search := strings.ToLower(strings.TrimSpace(query.Search))
	inOrder := slices.All(order)
	if query.Descending {
		inOrder = slices.Backward(order)
	}
	for _, index := range inOrder {
		if search == "" && query.State == "" && len(indexes) == query.Limit {
			return indexes, len(order)
		}
		h := &r.hosts[index]
		if query.State != "" && HostStates[h.stateIndex] != query.State || !strings.Contains(h.firstOrigin.Host(), search) {
			continue
		}
		if total++; total > query.Offset && len(indexes) < query.Limit {
			indexes = append(indexes, index)
		}
	}
	return indexes, total
}

// sortedIndexes returns the places of the hosts in an order, which is worked out once.
func (r *HostListSnapshot) sortedIndexes(ctx context.Context, q *Inspector, key string) ([]int32, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if order := r.indexesBySort[key]; order != nil {
		return order, nil
	}
	sortKey := HostSortKeys[key]
	compare := func(i, j int32) int { return sortKey(&r.hosts[i]).compare(sortKey(&r.hosts[j])) }
	switch key {
	case "host":
		compare = func(i, j int32) int {
			return strings.Compare(r.hosts[i].firstOrigin.Host(), r.hosts[j].firstOrigin.Host())
		}
	case sortByRobotsAge:
		ages, err := r.robotsAges(ctx, q)
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
	r.indexesBySort[key] = order
	return order, nil
}

// robotsAges returns how old the robots.txt of each host's first origin is. One that
// was never fetched is the oldest.
func (r *HostListSnapshot) robotsAges(ctx context.Context, q *Inspector) ([]time.Duration, error) {
	ages := make([]time.Duration, len(r.hosts))
	for i := range r.hosts {
		status, err := q.Gate.LastFetchSummary(ctx, r.hosts[i].firstOrigin)
		if err != nil {
			return nil, err
		}
		ages[i] = maxDuration
		if !status.FetchedAt.IsZero() {
			ages[i] = r.CreatedAt.Sub(status.FetchedAt)
		}
	}
	return ages, nil
}

// sortByRobotsAge is the order for which robots.txt files must be known.
const sortByRobotsAge = "robots_age"

// HostSortKeys are the orders that hosts can be asked for in. A time that will not
// come, and a pace that is not known, are the largest.
var HostSortKeys = map[string]func(*hostSortEntry) hostSortValues{
	"":       func(h *hostSortEntry) hostSortValues { return h.attentionKey },
	"host":   nil, // see HostListSnapshot.sortedIndexes
	"state":  func(h *hostSortEntry) hostSortValues { return hostSortValues{int64(h.stateIndex)} },
	"queued": func(h *hostSortEntry) hostSortValues { return hostSortValues{h.queuedURLs} },
	"due":    func(h *hostSortEntry) hostSortValues { return hostSortValues{h.dueAt} },
	"pace": func(h *hostSortEntry) hostSortValues {
		return hostSortValues{cmp.Or(h.medianDelay, int64(maxDuration))}
	},
	"last_status":   func(h *hostSortEntry) hostSortValues { return hostSortValues{int64(h.lastStatus)} },
	sortByRobotsAge: nil, // likewise
	"failures":      func(h *hostSortEntry) hostSortValues { return hostSortValues{h.failures} },
	"requests":      func(h *hostSortEntry) hostSortValues { return hostSortValues{h.requests} },
}

// maxDuration is longer than any rest, or age.
const maxDuration = time.Duration(math.MaxInt64)

// unixNanoOrMax returns a time as a number, of which zero is the last.
func unixNanoOrMax(t time.Time) int64 {
	if t.IsZero() {
		return math.MaxInt64
	}
	return t.UnixNano()
}
