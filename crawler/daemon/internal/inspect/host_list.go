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

// A HostListSnapshot is the list of a project's hosts at one moment. Its reports do not say why
// URLs are parked. It reads the dates of robots.txt files only when a query sorts by them. Page is
// safe for concurrent use.
type HostListSnapshot struct {
	CreatedAt    time.Time
	expiresAt    time.Time       // end of its use by HostListCache
	hosts        []hostSortEntry // the first MaxHostsInMemory have their reports
	CountByState map[string]int  // number of hosts by api.Host.State

	mu            sync.Mutex         // guards indexesBySort
	indexesBySort map[string][]int32 // by api.HostQuery.Sort: indexes in hosts, in ascending order
}

// A hostSortEntry holds the values by which a host is sorted and selected, and a reference to its
// report: 88 bytes, the name, and 4 more for each order.
type hostSortEntry struct {
	hostRef
	attentionKey hostSortValues // see attentionSortKey
	queuedURLs   int64
	dueAt        int64 // Unix time in nanoseconds; math.MaxInt64: never
	medianDelay  int64 // nanoseconds; 0: unknown
	requests     int64
	failures     int64
	lastStatus   int32
	stateIndex   int8 // index in HostStates
}

// NewHostList lists the hosts. A list of 100,000 takes about 16 MiB.
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

// addHost appends a host. The first MaxHostsInMemory keep their reports.
func (r *HostListSnapshot) addHost(h *HostReport) {
	r.CountByState[h.State]++
	r.hosts = append(r.hosts, hostSortEntry{
		hostRef: newHostRef(h, len(r.hosts) < MaxHostsInMemory), attentionKey: attentionSortKey(&h.Host),
		queuedURLs: int64(h.QueuedURLs), dueAt: unixNanoOrMax(h.DueAt), medianDelay: int64(h.MedianObservedDelay),
		requests: h.Requests, failures: h.Failures, lastStatus: int32(h.LastStatus),
		stateIndex: int8(slices.Index(HostStates, h.State)),
	})
}

// Page returns the page of hosts that the query selects, and the number of selected hosts on all
// pages. It reads hosts beyond the first MaxHostsInMemory from the store again, so their reports
// are newer than their order.
func (r *HostListSnapshot) Page(ctx context.Context, q *Inspector,
	query api.HostQuery) (page []*HostReport, total int, err error) {
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

// filterAndPaginate returns the indexes of one page of the selected hosts, in the given order, and
// the number of all selected hosts.
func (r *HostListSnapshot) filterAndPaginate(order []int32, query api.HostQuery) (indexes []int32, total int) {
	search := strings.ToLower(strings.TrimSpace(query.Search))
	inOrder := slices.All(order)
	if query.Descending {
		inOrder = slices.Backward(order)
	}
	for _, index := range inOrder {
		// Without a filter, the total is known when the page is full.
		if search == "" && query.State == "" && len(indexes) == query.Limit {
			return indexes, len(order)
		}
		h := &r.hosts[index]
		if query.State != "" && HostStates[h.stateIndex] != query.State ||
			!strings.Contains(h.firstOrigin.Host(), search) {
			continue
		}
		if total++; total > query.Offset && len(indexes) < query.Limit {
			indexes = append(indexes, index)
		}
	}
	return indexes, total
}

// sortedIndexes returns the indexes of all hosts, sorted by key, a key of HostSortKeys. It sorts
// once per key.
func (r *HostListSnapshot) sortedIndexes(ctx context.Context, q *Inspector, key string) ([]int32, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if order := r.indexesBySort[key]; order != nil {
		return order, nil
	}
	// Two keys compare by values that a hostSortEntry lacks or holds as text.
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
	// Hosts with equal values stay in the order of the list.
	order := make([]int32, len(r.hosts))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int { return cmp.Or(compare(i, j), int(i-j)) })
	r.indexesBySort[key] = order
	return order, nil
}

// robotsAges returns the age of the robots.txt of each host's first origin. A robots.txt that was
// never fetched has the age maxDuration.
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

// sortByRobotsAge is the key of HostSortKeys that needs the dates of robots.txt files.
const sortByRobotsAge = "robots_age"

// HostSortKeys lists the valid values of api.HostQuery.Sort, with the values that they compare. The
// time of a host that is never due, and an unknown pace, are the largest.
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
	sortByRobotsAge: nil, // see HostListSnapshot.sortedIndexes
	"failures":      func(h *hostSortEntry) hostSortValues { return hostSortValues{h.failures} },
	"requests":      func(h *hostSortEntry) hostSortValues { return hostSortValues{h.requests} },
}

// maxDuration is longer than any delay or age.
const maxDuration = time.Duration(math.MaxInt64)

// unixNanoOrMax returns t as Unix time in nanoseconds, or math.MaxInt64 for the zero time.
func unixNanoOrMax(t time.Time) int64 {
	if t.IsZero() {
		return math.MaxInt64
	}
	return t.UnixNano()
}
