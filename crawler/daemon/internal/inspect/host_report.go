package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/storage"
)

// A HostReport is what is said of a host, and what that rests on.
type HostReport struct {
	api.Host
	parkedURLTally   RefusalTally
	hostDueAt        time.Time      // of the host's clock
	heldOrigin       decorum.Origin // whose hold State tells of
	pagesTowardLimit int64          // pages that count for max_pages_per_host
	nextURLDue       time.Time
	OriginList       []decorum.Origin // as Origins
}

// lookUpHost returns what is known of a host, nil if the crawl has not met it: see ReadHost.
func (q *Inspector) lookUpHost(ctx context.Context, name string, withParked bool) (*HostReport, error) {
	origins, err := q.HostOrigins(ctx, name)
	if err != nil {
		return nil, err
	}
	return q.ReadHost(ctx, origins, withParked)
}

// HostOrigins returns the origins of a host: none if the crawl has not met it.
func (q *Inspector) HostOrigins(ctx context.Context, host string) (origins []decorum.Origin, err error) {
	err = q.FrontierStore.OriginNames(ctx, func(o decorum.Origin) bool {
		if o.Host() == host {
			origins = append(origins, o)
		}
		return true
	})
	return origins, err
}

// newHostReport begins the report on a host with what is remembered of it.
func (q *Inspector) newHostReport(name string, h *storage.HostState) *HostReport {
	stats := crawler.DecodeHostStats(h.EncodedStats)
	return &HostReport{hostDueAt: h.Due, pagesTowardLimit: stats.PagesRequested, Host: api.Host{
		Host: name, State: stateDone, ConsecutiveFailures: h.ConsecutiveFailures, Slots: max(h.Slots, 1), RequiredDelay: api.Milliseconds(h.LostVisitDelay),
		CrawlDelay: api.Milliseconds(stats.CrawlDelay), ConfiguredDelay: api.Milliseconds(stats.ConfiguredDelay),
		MinObservedDelay: api.Milliseconds(stats.Gaps.Min), MedianObservedDelay: api.Milliseconds(stats.Gaps.Median()), ObservedDelayCount: stats.Gaps.Count(),
		LargestDelayShortfall: api.Milliseconds(stats.LargestDelayShortfall),
		LastStatus:            stats.LastStatus, LastVisit: stats.LastEnd, Address: stats.Addr,
		HostTotals: api.HostTotals{Requests: stats.Requests, Pages: stats.Pages, Failures: stats.FailedRequests, Bytes: stats.Bytes, RequestTime: api.Milliseconds(stats.TotalRequestTime), PagesWithheld: stats.PagesWithheld},
		Override:   q.Project.HostOverride(name),
	}}
}

// The states of a host, from what keeps it from being visited least to what
// does most.
const (
	HostDue              = "due"
	stateWaiting         = "waiting"
	stateHeld            = "held"
	HostSuspended        = "set aside"
	stateAwaitingRevisit = "resting"
	stateDone            = "done"
)

var HostStates = []string{HostDue, stateWaiting, stateHeld, HostSuspended, stateAwaitingRevisit, stateDone}

// addOrigin adds what the store has of one of the host's origins. The host is
// in the state of the one that can be visited first.
func (h *HostReport) addOrigin(o *storage.OriginInfo, now time.Time) {
	queuedOrLeased := o.QueuedURLs + o.LeasedURLs
	h.OriginList, h.Origins = append(h.OriginList, o.Origin), append(h.Origins, o.Origin.String())
	h.KnownURLs += o.SeenURLs
	h.QueuedURLs += queuedOrLeased
	h.AwaitingRevisit += o.AwaitingRevisit
	h.ParkedURLs += o.ParkedURLs
	h.DoneURLs += max(0, o.SeenURLs-queuedOrLeased-o.ParkedURLs) // hops are queued and not seen
	state := hostStateFromOrigin(o, now)
	before, after := slices.Index(HostStates, h.State), slices.Index(HostStates, state)
	if after > before || after == before && !o.NextDue.Before(h.nextURLDue) {
		return
	}
	h.State, h.nextURLDue, h.DueAt, h.HeldUntil, h.heldOrigin = state, o.NextDue, time.Time{}, time.Time{}, decorum.Origin{}
	if o.NextDue.After(time.Unix(0, 0)) { // before, it says that there is nothing to wait for
		h.DueAt = o.NextDue.UTC()
	}
	if state == stateHeld || state == HostSuspended {
		h.HeldUntil, h.heldOrigin = o.HeldUntil.UTC(), o.Origin
	}
}

func hostStateFromOrigin(o *storage.OriginInfo, now time.Time) string {
	switch {
	case o.QueuedURLs+o.LeasedURLs+o.AwaitingRevisit == 0:
		return stateDone
	case !o.NextDue.After(now):
		return HostDue
	case o.QueuedURLs+o.LeasedURLs == 0:
		return stateAwaitingRevisit
	case o.HeldUntil.After(now) && o.Suspended:
		return HostSuspended
	case o.HeldUntil.After(now):
		return stateHeld
	}
	return stateWaiting
}

// markSuspendedIfCrawlDelayTooLong sets a host aside that asks for more than the longest delay: no page of it
// is visited, whether the crawl has come to hold it or not.
func (h *HostReport) markSuspendedIfCrawlDelayTooLong(maxDelay project.Duration) {
	if h.QueuedURLs == 0 || time.Duration(h.CrawlDelay) <= time.Duration(maxDelay) {
		return
	}
	h.HoldReason = fmt.Sprintf("its Crawl-delay of %v is longer than max_crawl_delay, %v", DelayText(h.CrawlDelay), maxDelay)
	if h.State != HostSuspended {
		h.State, h.HeldUntil = HostSuspended, h.DueAt
	}
}

// SetHostHoldReason says why the gate holds a host, or that its budget is used up.
func (q *Inspector) SetHostHoldReason(ctx context.Context, h *HostReport) error {
	if h.heldOrigin.IsZero() {
		return nil
	}
	postponed, err := q.Gate.PostponedReason(ctx, q.AsOf, h.heldOrigin)
	maxPages, maxBytes := int64(q.Project.Scope.MaxPagesPerHost), int64(q.Project.Scope.MaxBytesPerHost)
	switch {
	case err != nil:
	case postponed != nil:
		h.HoldReason = plaintext.ReplaceControlChars(postponed.Reason)
	case h.HoldReason == "" && h.State == HostSuspended && maxPages > 0 && h.pagesTowardLimit >= maxPages:
		h.HoldReason = fmt.Sprintf("it has had its %d pages", maxPages)
	case h.HoldReason == "" && h.State == HostSuspended && maxBytes > 0 && h.Bytes >= maxBytes:
		h.HoldReason = fmt.Sprintf("it has sent its %d bytes", maxBytes)
	}
	return err
}
