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

// A HostReport is the report on a host in the API, with the values from which it is derived.
type HostReport struct {
	api.Host
	parkedURLTally   RefusalTally
	hostDueAt        time.Time        // earliest time of the host's next visit by its delay
	heldOrigin       decorum.Origin   // origin whose hold State and HeldUntil describe; zero: no hold
	pagesTowardLimit int64            // pages that count for max_pages_per_host
	nextURLDue       time.Time        // OriginInfo.NextDue of the origin that State describes
	OriginList       []decorum.Origin // the parsed form of Origins
}

// lookUpHost returns the report on a host, or nil if the crawl has no URL of it: see ReadHost.
func (q *Inspector) lookUpHost(ctx context.Context, name string, withParked bool) (*HostReport, error) {
	origins, err := q.HostOrigins(ctx, name)
	if err != nil {
		return nil, err
	}
	return q.ReadHost(ctx, origins, withParked)
}

// HostOrigins returns the origins of a host in the store, which may be none.
func (q *Inspector) HostOrigins(ctx context.Context, host string) (origins []decorum.Origin, err error) {
	err = q.FrontierStore.OriginNames(ctx, func(o decorum.Origin) bool {
		if o.Host() == host {
			origins = append(origins, o)
		}
		return true
	})
	return origins, err
}

// newHostReport returns the report on a host without origins, from the stored state of the host.
func (q *Inspector) newHostReport(name string, h *storage.HostState) *HostReport {
	stats := crawler.DecodeHostStats(h.EncodedStats)
	health := stats.Health
	health.ConsecutiveFailures = h.ConsecutiveFailures
	return &HostReport{hostDueAt: h.Due, pagesTowardLimit: stats.PagesRequested, Host: api.Host{
		Host: name, State: stateDone, ConsecutiveFailures: h.ConsecutiveFailures, Slots: max(h.Slots, 1),
		RequiredDelay: api.Milliseconds(h.LostVisitDelay), LearnedDelay: api.Milliseconds(health.LearnedPace.Delay),
		BackoffReason: health.RestReason(), FailedPages: failedPages(&stats),
		CrawlDelay: api.Milliseconds(stats.CrawlDelay), ConfiguredDelay: api.Milliseconds(stats.ConfiguredDelay),
		MinObservedDelay: api.Milliseconds(stats.Gaps.Min), MedianObservedDelay: api.Milliseconds(stats.Gaps.Median()),
		ObservedDelayCount:    stats.Gaps.Count(),
		LargestDelayShortfall: api.Milliseconds(stats.LargestDelayShortfall),
		LastStatus:            stats.LastStatus, LastVisit: stats.LastEnd, Address: stats.Addr,
		HostTotals: api.HostTotals{HostTraffic: api.HostTraffic(stats.HostTraffic), Pages: stats.Pages,
			Failures: stats.FailedRequests, RequestTime: api.Milliseconds(stats.TotalRequestTime),
			PagesWithheld: stats.PagesWithheld},
		Override: q.Project.HostOverride(name),
	}}
}

// failedPages returns the failed pages of a host.
func failedPages(stats *crawler.HostStats) (pages []api.FailedPage) {
	for _, page := range stats.Health.FailedPages {
		if page.Status != 0 {
			pages = append(pages, api.FailedPage{URL: plaintext.ReplaceControlChars(page.URL), Status: page.Status})
		}
	}
	return pages
}

// The states of a host, from the one nearest to a visit to the one farthest from it.
const (
	HostDue              = "due"       // a URL can be visited now
	stateWaiting         = "waiting"   // for the delay of the host or of a URL
	stateHeld            = "held"      // until HeldUntil, for example after failures
	HostSuspended        = "set aside" // held because visits make no sense for now
	stateAwaitingRevisit = "resting"   // all URLs are visited; some have a time for the next visit
	stateDone            = "done"      // no URL is left to visit
)

// HostStates lists the states of a host in the order above.
var HostStates = []string{HostDue, stateWaiting, stateHeld, HostSuspended, stateAwaitingRevisit, stateDone}

// addOrigin adds the numbers of one of the host's origins. The host takes the state and the times
// of the origin that can be visited first.
func (h *HostReport) addOrigin(o *storage.OriginInfo, now time.Time) {
	queuedOrLeased := o.QueuedURLs + o.LeasedURLs
	h.OriginList, h.Origins = append(h.OriginList, o.Origin), append(h.Origins, o.Origin.String())
	h.KnownURLs += o.SeenURLs
	h.QueuedURLs += queuedOrLeased
	h.AwaitingRevisit += o.AwaitingRevisit
	h.ParkedURLs += o.ParkedURLs
	// max: the targets of robots.txt redirects are queued but not seen.
	h.DoneURLs += max(0, o.SeenURLs-queuedOrLeased-o.ParkedURLs)
	// Keep the state of the earlier origins unless this one can be visited before them.
	state := hostStateFromOrigin(o, now)
	before, after := slices.Index(HostStates, h.State), slices.Index(HostStates, state)
	if after > before || after == before && !o.NextDue.Before(h.nextURLDue) {
		return
	}
	h.State, h.nextURLDue, h.DueAt, h.HeldUntil, h.heldOrigin = state, o.NextDue, time.Time{},
		time.Time{}, decorum.Origin{}
	if o.NextDue.After(time.Unix(0, 0)) { // an earlier NextDue means that the origin waits for nothing
		h.DueAt = o.NextDue.UTC()
	}
	if state == stateHeld || state == HostSuspended {
		h.HeldUntil, h.heldOrigin = o.HeldUntil.UTC(), o.Origin
	}
}

// hostStateFromOrigin returns the state of a host with only this origin.
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

// markSuspendedIfCrawlDelayTooLong reports a host as suspended if its Crawl-delay is longer than
// maxDelay. The crawl visits no page of the host, even if it has not suspended the host yet.
func (h *HostReport) markSuspendedIfCrawlDelayTooLong(maxDelay project.Duration) {
	if h.QueuedURLs == 0 || time.Duration(h.CrawlDelay) <= time.Duration(maxDelay) {
		return
	}
	h.HoldReason = fmt.Sprintf("its Crawl-delay of %v is longer than max_crawl_delay, %v",
		DelayText(h.CrawlDelay), maxDelay)
	if h.State != HostSuspended {
		h.State, h.HeldUntil = HostSuspended, h.DueAt
	}
}

// SetHostHoldReason sets h.HoldReason for a held host: the gate's reason, or the page or byte limit
// that the host has reached.
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
		h.HoldReason = fmt.Sprintf("it has reached its limit of %d pages", maxPages)
	case h.HoldReason == "" && h.State == HostSuspended && maxBytes > 0 && h.Bytes >= maxBytes:
		h.HoldReason = fmt.Sprintf("it has reached its limit of %d bytes", maxBytes)
	}
	return err
}
