package coord

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// ErrWorkerExpired is returned to a worker whose last heartbeat is longer ago than
// HeartbeatRequest.ExpiresAfter. The worker must join again.
var ErrWorkerExpired = errors.New("the worker has expired: its last heartbeat is too long ago")

// A HeartbeatRequest is the report of a worker, which is one process, to a crawl that has limits for
// all workers together. Its numbers count from when the worker joined, so that a repeated report
// changes nothing.
type HeartbeatRequest struct {
	WorkerName                string        // unique among the workers of the store
	ExpiresAfter              time.Duration // a worker expires this long after its last report
	Seq                       int64         // grows with each report; an older report that arrives late changes nothing
	Joining                   bool          // this is the worker's first report
	Leaving                   bool          // this is its last report: its unused pages go back to all
	ResetCountsIfLimitReached bool          // if a limit is reached, the counts of all workers start from 0 again
	Limits                    CrawlLimits   // the limits of all workers; all must send the same
	TotalWantedPages          int64         // pages it wants since it joined, visited ones included; fewer returns some
	VisitedPagesSinceJoin     int64         // pages that it has visited
	ReceivedBytesSinceJoin    int64         // bytes of bodies that it has received, as decoded
}

// CrawlLimits are the limits of all workers together. 0 means no limit.
type CrawlLimits struct {
	MaxPages, MaxReceivedBytes int64         // visited pages; bytes of bodies, as decoded
	MaxWorkingTime             time.Duration // total time in which at least one worker sends heartbeats
}

// A HeartbeatReply tells a worker how many workers there are and what the limits leave to it.
type HeartbeatReply struct {
	WorkerCount int // number of workers, this one included
	// GrantedPages is the number of pages that the worker may visit since it joined, visited ones
	// included.
	GrantedPages int64
	// PageLimitReached, ByteLimitReached and TimeLimitReached report whether all workers together
	// have reached the limit.
	PageLimitReached, ByteLimitReached, TimeLimitReached bool
}

// SharedCrawlLimits are limits to which all workers of a crawl keep together. redis.Store.SharedLimits
// returns them. Methods may be called at the same time.
type SharedCrawlLimits struct{ client *client.Client }

// NewSharedLimits returns the limits that the servers of c store.
func NewSharedLimits(c *client.Client) *SharedCrawlLimits { return &SharedCrawlLimits{c} }

// Heartbeat sends a report, and repeats it until the server has answered. Granted and visited pages of
// all workers together never exceed CrawlLimits.MaxPages; the granted pages of an expired worker count
// as visited. The counts are as durable as what Store.Add adds. Heartbeat returns an error that wraps
// ErrWorkerExpired if the worker has expired and Joining is false.
func (s *SharedCrawlLimits) Heartbeat(ctx context.Context, r HeartbeatRequest) (m HeartbeatReply, err error) {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return m, err
	}
	defer end()
	reply, _, err := s.client.RunUpdate(ctx, s.client.Partitions()[0], true, lua.Heartbeat, r.scriptArgs()...)
	if err != nil {
		return m, fmt.Errorf("heartbeat: %w", err)
	}
	if reply == "gone" {
		return m, fmt.Errorf("heartbeat: %w", ErrWorkerExpired)
	}
	var pages, bytes, timeUp int
	if _, err := fmt.Sscan(reply, &m.WorkerCount, &m.GrantedPages, &pages, &bytes, &timeUp); err != nil {
		return m, client.ErrBadReply
	}
	m.PageLimitReached, m.ByteLimitReached, m.TimeLimitReached = pages == 1, bytes == 1, timeUp == 1
	return m, nil
}

// scriptArgs returns the arguments of heartbeat.lua after the time, in its order.
func (r *HeartbeatRequest) scriptArgs() []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{r.WorkerName, client.DurationArg(r.ExpiresAfter),
		client.BoolArg(r.Joining), client.BoolArg(r.Leaving), client.BoolArg(r.ResetCountsIfLimitReached),
		number(r.Limits.MaxPages), number(r.Limits.MaxReceivedBytes), client.DurationArg(r.Limits.MaxWorkingTime),
		number(r.TotalWantedPages), number(r.VisitedPagesSinceJoin), number(r.ReceivedBytesSinceJoin), number(r.Seq)}
}
