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

// ErrWorkerExpired is returned to a worker that sent no heartbeat for so long that it was
// taken for dead. It must join anew.
var ErrWorkerExpired = errors.New("the worker was taken for dead")

// A HeartbeatRequest is what a worker, which is one process, reports of its part in a crawl
// that has limits for all workers together. Its numbers count from when it joined: to send
// them again changes nothing.
type HeartbeatRequest struct {
	WorkerName                string        // unique
	ExpiresAfter              time.Duration // how long after its last report a worker is dead
	Seq                       int64         // number of the report: one that arrives after a later one changes nothing
	Joining                   bool          // this is the worker's first report
	Leaving                   bool          // this is its last: what it has not used is for others
	ResetCountsIfLimitReached bool          // if a limit is reached already, all begin to count anew
	Limits                    CrawlLimits
	TotalWantedPages          int64 // pages that it would like to be permitted; fewer than before gives some back
	VisitedPagesSinceJoin     int64 // pages of these that it has visited
	ReceivedBytesSinceJoin    int64 // bytes of bodies, as decoded
}

// CrawlLimits are the limits of all workers together; 0 means that there is none.
type CrawlLimits struct {
	MaxPages, MaxReceivedBytes int64         // pages that are visited, bytes of bodies as decoded
	MaxWorkingTime             time.Duration // during which at least one worker works
}

// A HeartbeatReply is what a worker learns of the others and of the limits.
type HeartbeatReply struct {
	WorkerCount                                          int   // how many there are, with this one
	GrantedPages                                         int64 // how many the worker may visit since it joined, visited ones included
	PageLimitReached, ByteLimitReached, TimeLimitReached bool  // whether the limit is reached
}

// SharedCrawlLimits are limits that all workers of a crawl keep to together.
type SharedCrawlLimits struct{ client *client.Client }

// NewSharedLimits returns the limits that are kept by the servers of c.
func NewSharedLimits(c *client.Client) *SharedCrawlLimits { return &SharedCrawlLimits{c} }

// Heartbeat makes a report. Pages that are granted to all workers, and pages that were
// visited, are never more than CrawlLimits.MaxPages together; those of a worker that has died
// count as visited. The counts are in the first partition, and as safe as what Store.Add adds.
func (s *SharedCrawlLimits) Heartbeat(ctx context.Context, r HeartbeatRequest) (m HeartbeatReply, err error) {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return m, err
	}
	defer end()
	reply, _, err := s.client.RunUpdate(ctx, s.client.Partitions()[0], true, lua.Heartbeat, r.scriptArgs()...)
	if err != nil {
		return m, fmt.Errorf("muster: %w", err)
	}
	if reply == "gone" {
		return m, fmt.Errorf("muster: %w", ErrWorkerExpired)
	}
	var pages, bytes, timeUp int
	if _, err := fmt.Sscan(reply, &m.WorkerCount, &m.GrantedPages, &pages, &bytes, &timeUp); err != nil {
		return m, client.ErrBadReply
	}
	m.PageLimitReached, m.ByteLimitReached, m.TimeLimitReached = pages == 1, bytes == 1, timeUp == 1
	return m, nil
}

// scriptArgs returns the arguments of heartbeat.lua.
func (r *HeartbeatRequest) scriptArgs() []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{r.WorkerName, client.DurationArg(r.ExpiresAfter),
		client.BoolArg(r.Joining), client.BoolArg(r.Leaving), client.BoolArg(r.ResetCountsIfLimitReached),
		number(r.Limits.MaxPages), number(r.Limits.MaxReceivedBytes), client.DurationArg(r.Limits.MaxWorkingTime),
		number(r.TotalWantedPages), number(r.VisitedPagesSinceJoin), number(r.ReceivedBytesSinceJoin), number(r.Seq)}
}
