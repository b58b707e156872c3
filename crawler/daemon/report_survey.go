package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/storage"
)

// addHostTotals adds u to t.
func addHostTotals(t, u *api.HostTotals) {
	t.Requests += u.Requests
	t.Pages += u.Pages
	t.Failures += u.Failures
	t.Bytes += u.Bytes
	t.RequestTime += u.RequestTime
	t.KnownURLs += u.KnownURLs
	t.DoneURLs += u.DoneURLs
	t.QueuedURLs += u.QueuedURLs
	t.AwaitingRevisit += u.AwaitingRevisit
	t.ParkedURLs += u.ParkedURLs
	t.BlockedByRobots += u.BlockedByRobots
	t.BlockedByTDMRep += u.BlockedByTDMRep
	t.OutOfScope += u.OutOfScope
	t.PagesWithheld += u.PagesWithheld
	recalculateCoverage(t)
}

// recalculateCoverage works out the coverage.
func recalculateCoverage(t *api.HostTotals) {
	t.Coverage = 1
	if all := t.KnownURLs - t.OutOfScope; all > 0 {
		t.Coverage = float64(t.DoneURLs) / float64(all)
	}
}

// A hostReport is what is said of a host, and what that rests on.
type hostReport struct {
	api.Host
	parkedURLTally   refusalTally
	hostDueAt        time.Time      // of the host's clock
	heldOrigin       decorum.Origin // whose hold State tells of
	pagesTowardLimit int64          // pages that count for max_pages_per_host
	nextURLDue       time.Time
	firstOrigin      decorum.Origin // of Origins
	otherOrigins     []decorum.Origin
}

// crawlReport asks the stores for the report, of one host if it is named. The hosts come in
// the order of what matters, at most limit of them unless it is 0.
func (q *inspector) crawlReport(ctx context.Context, onlyHost string, limit int) (*api.CrawlReport, error) {
	s, err := q.buildStreamedReport(ctx, onlyHost, limit, maxHostsInMemory)
	if err != nil {
		return nil, err
	}
	return s.fullReport(ctx)
}

// buildStreamedReport adds up what report returns, and holds only so many hosts. Of the others it
// keeps what it takes to read them again, or nothing if they are beyond the limit.
func (q *inspector) buildStreamedReport(ctx context.Context, onlyHost string, limit, maxInMemory int) (*streamedReport, error) {
	s := &streamedReport{inspector: q, ranking: hostRanking{limit: limit, maxFullReports: maxInMemory}, totals: api.CrawlReport{
		AsOf: q.inspectionTime.UTC(), HostsByState: map[string]int{}, CrawlDelayLimit: api.Milliseconds(q.project.Politeness.MaxCrawlDelay)}}
	r, refusals := &s.totals, refusalTally{}
	addHost := func(h *hostReport) {
		recalculateCoverage(&h.HostTotals) // again: URLs out of scope are known by now
		h.ParkedByRule = h.parkedURLTally.sorted()
		refusals.merge(h.ParkedByRule)
		r.HostCount++
		r.OriginCount += len(h.Origins)
		addHostTotals(&r.HostTotals, &h.HostTotals)
		r.LargestDelayShortfall = max(r.LargestDelayShortfall, h.LargestDelayShortfall)
		r.HostsByState[h.State]++
		s.ranking.addHost(h)
	}
	var err error
	if onlyHost == "" {
		err = q.forEachHostReport(ctx, true, addHost)
	} else {
		err = q.findAndYieldHost(ctx, onlyHost, addHost)
	}
	if err == nil {
		err = q.addRefusalAndSessionIDCounts(ctx, onlyHost, r)
	}
	if err != nil {
		return nil, err
	}
	s.ranking.sortAndTrim()
	r.ParkedByRule = refusals.sorted()
	if limit > 0 {
		r.ParkedByRule = r.ParkedByRule[:min(limit, len(r.ParkedByRule))]
		r.RefusalCounts = r.RefusalCounts[:min(limit, len(r.RefusalCounts))]
		r.StrippedSessionIDCounts = r.StrippedSessionIDCounts[:min(limit, len(r.StrippedSessionIDCounts))]
	}
	return s, nil
}

// findAndYieldHost calls done with the host of that name, if the crawl has met it.
func (q *inspector) findAndYieldHost(ctx context.Context, name string, yield func(*hostReport)) error {
	origins, err := q.hostOrigins(ctx, name)
	if err != nil {
		return err
	}
	return q.readAndYieldHost(ctx, origins, true, yield)
}

// hostOrigins returns the origins of a host: none if the crawl has not met it.
func (q *inspector) hostOrigins(ctx context.Context, host string) (origins []decorum.Origin, err error) {
	err = storage.OriginNames(ctx, q.frontierStore, func(o decorum.Origin) bool {
		if o.Host() == host {
			origins = append(origins, o)
		}
		return true
	})
	return origins, err
}

// addRefusalAndSessionIDCounts adds what was not queued as it was found.
func (q *inspector) addRefusalAndSessionIDCounts(ctx context.Context, onlyHost string, s *api.CrawlReport) (err error) {
	if s.RefusalCounts, err = frontier.LoadRefusalCounts(ctx, q.frontierStore); err != nil {
		return err
	}
	s.StrippedSessionIDCounts, err = frontier.LoadStrippedSessionIDCounts(ctx, q.frontierStore)
	isOtherHost := func(r frontier.RefusalCount) bool { return onlyHost != "" && r.Host != onlyHost }
	s.RefusalCounts, s.StrippedSessionIDCounts = slices.DeleteFunc(s.RefusalCounts, isOtherHost), slices.DeleteFunc(s.StrippedSessionIDCounts, isOtherHost)
	return err
}

// newHostReport begins the report on a host with what is remembered of it.
func (q *inspector) newHostReport(name string, h *storage.HostState) hostReport {
	stats := crawler.DecodeHostStats(h.EncodedStats)
	return hostReport{hostDueAt: h.Due, pagesTowardLimit: stats.PagesRequested, Host: api.Host{
		Host: name, State: stateDone, ConsecutiveFailures: h.ConsecutiveFailures, Slots: max(h.Slots, 1), RequiredDelay: api.Milliseconds(h.LostVisitDelay),
		CrawlDelay: api.Milliseconds(stats.CrawlDelay), ConfiguredDelay: api.Milliseconds(stats.ConfiguredDelay),
		MinObservedDelay: api.Milliseconds(stats.Gaps.Min), MedianObservedDelay: api.Milliseconds(stats.Gaps.Median()), ObservedDelayCount: stats.Gaps.Count(),
		LargestDelayShortfall: api.Milliseconds(stats.LargestDelayShortfall),
		LastStatus:            stats.LastStatus, LastVisit: stats.LastEnd, Address: stats.Addr,
		HostTotals: api.HostTotals{Requests: stats.Requests, Pages: stats.Pages, Failures: stats.FailedRequests, Bytes: stats.Bytes, RequestTime: api.Milliseconds(stats.TotalRequestTime), PagesWithheld: stats.PagesWithheld},
		Override:   q.project.HostOverride(name),
	}}
}

// The states of a host, from what keeps it from being visited least to what
// does most.
const (
	stateDue             = "due"
	stateWaiting         = "waiting"
	stateHeld            = "held"
	stateSuspended       = "set aside"
	stateAwaitingRevisit = "resting"
	stateDone            = "done"
)

var hostStates = []string{stateDue, stateWaiting, stateHeld, stateSuspended, stateAwaitingRevisit, stateDone}

// addOrigin adds what the store has of one of the host's origins. The host is
// in the state of the one that can be visited first.
func (h *hostReport) addOrigin(o *storage.OriginInfo, now time.Time) {
	queuedOrLeased := o.QueuedURLs + o.LeasedURLs
	if len(h.Origins) == 0 {
		h.firstOrigin = o.Origin
	} else {
		h.otherOrigins = append(h.otherOrigins, o.Origin)
	}
	h.Origins = append(h.Origins, o.Origin.String())
	h.KnownURLs += o.SeenURLs
	h.QueuedURLs += queuedOrLeased
	h.AwaitingRevisit += o.AwaitingRevisit
	h.ParkedURLs += o.ParkedURLs
	h.DoneURLs += max(0, o.SeenURLs-queuedOrLeased-o.ParkedURLs) // hops are queued and not seen
	state := hostStateFromOrigin(o, now)
	before, after := slices.Index(hostStates, h.State), slices.Index(hostStates, state)
	if after > before || after == before && !o.NextDue.Before(h.nextURLDue) {
		return
	}
	h.State, h.nextURLDue, h.DueAt, h.HeldUntil, h.heldOrigin = state, o.NextDue, time.Time{}, time.Time{}, decorum.Origin{}
	if o.NextDue.After(time.Unix(0, 0)) { // before, it says that there is nothing to wait for
		h.DueAt = o.NextDue.UTC()
	}
	if state == stateHeld || state == stateSuspended {
		h.HeldUntil, h.heldOrigin = o.HeldUntil.UTC(), o.Origin
	}
}

func hostStateFromOrigin(o *storage.OriginInfo, now time.Time) string {
	switch {
	case o.QueuedURLs+o.LeasedURLs+o.AwaitingRevisit == 0:
		return stateDone
	case !o.NextDue.After(now):
		return stateDue
	case o.QueuedURLs+o.LeasedURLs == 0:
		return stateAwaitingRevisit
	case o.HeldUntil.After(now) && o.Suspended:
		return stateSuspended
	case o.HeldUntil.After(now):
		return stateHeld
	}
	return stateWaiting
}

// markSuspendedIfCrawlDelayTooLong sets a host aside that asks for more than the longest delay: no page of it
// is visited, whether the crawl has come to hold it or not.
func (h *hostReport) markSuspendedIfCrawlDelayTooLong(maxDelay project.Duration) {
	if h.QueuedURLs == 0 || time.Duration(h.CrawlDelay) <= time.Duration(maxDelay) {
		return
	}
	h.HoldReason = fmt.Sprintf("its Crawl-delay of %v is longer than max_crawl_delay, %v", delayText(h.CrawlDelay), maxDelay)
	if h.State != stateSuspended {
		h.State, h.HeldUntil = stateSuspended, h.DueAt
	}
}

// setHostHoldReason says why the gate holds a host, or that its budget is used up.
func (q *inspector) setHostHoldReason(ctx context.Context, h *hostReport) error {
	if h.heldOrigin.IsZero() {
		return nil
	}
	postponed, err := q.gate.PostponedReason(ctx, q.inspectionTime, h.heldOrigin)
	maxPages, maxBytes := int64(q.project.Scope.MaxPagesPerHost), int64(q.project.Scope.MaxBytesPerHost)
	switch {
	case err != nil:
	case postponed != nil:
		h.HoldReason = plaintext.ReplaceControlChars(postponed.Reason)
	case h.HoldReason == "" && h.State == stateSuspended && maxPages > 0 && h.pagesTowardLimit >= maxPages:
		h.HoldReason = fmt.Sprintf("it has had its %d pages", maxPages)
	case h.HoldReason == "" && h.State == stateSuspended && maxBytes > 0 && h.Bytes >= maxBytes:
		h.HoldReason = fmt.Sprintf("it has sent its %d bytes", maxBytes)
	}
	return err
}

// A hostSortValues is what hosts are sorted by, the smallest first.
type hostSortValues [3]int64

// attentionSortKey is the smallest for what asks most to be looked at: rests cut short,
// hosts that stand still, and those with most to do.
func attentionSortKey(h *api.Host) hostSortValues {
	waiting := int64(h.QueuedURLs)
	if h.State == stateSuspended || h.State == stateHeld {
		waiting += 1 << 60
	}
	return hostSortValues{-int64(h.LargestDelayShortfall), -waiting, -h.Requests}
}

func (k hostSortValues) compare(l hostSortValues) int {
	return cmp.Or(cmp.Compare(k[0], l[0]), cmp.Compare(k[1], l[1]), cmp.Compare(k[2], l[2]))
}
